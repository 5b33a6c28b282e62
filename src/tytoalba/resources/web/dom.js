/** Small tools for the document. Data become text nodes and attributes, never markup. */

export const byId = (id) => document.getElementById(id);

/** An element with attributes and children; strings become text. */
export function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** The same for SVG. */
export function draw(tag, attributes = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** Write only what changed: screen readers and layouts are left alone. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

export function show(node, visible) {
  node.hidden = !visible;
}

/** How full a meter is, 0 to 1. */
export function fill(meter, share, value) {
  meter.querySelector(".bar").style.transform = `scaleX(${Math.min(Math.max(share, 0), 1)})`;
  meter.setAttribute("aria-valuenow", String(value));
}

/** A message below a form: what is going on, or what went wrong. */
export function say(node, text, bad = false) {
  node.classList.toggle("bad", bad);
  setText(node, text);
}

/** Colours of the style sheet, for canvases; looked up again when the theme changes. */
const N_TRACK_COLOURS = 6;
let palette = null;
for (const query of ["(prefers-color-scheme: dark)", "(prefers-contrast: more)"]) {
  matchMedia(query).addEventListener("change", () => { palette = null; });
}

export function colours() {
  if (palette) return palette;
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(name).trim();
  palette = {
    accent: read("--accent"), soft: read("--soft"), line: read("--line"), card: read("--card"), ink: read("--ink"),
    tracks: Array.from({ length: N_TRACK_COLOURS }, (_, n) => read(`--track-${n}`)),
  };
  return palette;
}

/** Which of the track colours somebody has: it stays as long as the number does. */
export const colourOf = (id) => (id - 1 + N_TRACK_COLOURS) % N_TRACK_COLOURS;

/** "#1f6f7d" as three numbers. */
export const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

/** The number of somebody in a coloured disc. */
export const chip = (id, speaking = true) =>
  make("span", { class: `chip c${colourOf(id)}${speaking ? "" : " silent"}` }, String(id));
