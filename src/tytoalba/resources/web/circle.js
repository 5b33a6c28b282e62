/** The room from above: scores, people, what was taught, and a knob to choose a direction with. */

import { direction, wrap } from "./words.js";
import { colourOf, draw } from "./dom.js";

const INNER = 26, OUTER = 84; // radii of a score of 0 and of 1
const RING = 92, TAUGHT = 102, EVIDENCE = 8; // of the knob and the people; where bars of evidence begin, and the longest
const LABELS = { 0: [0, -124], 90: [-123, -4], 180: [0, 116], 270: [123, -4] };
const TAPPED = 5; // degrees: a finger is no finer

/** Where an azimuth is at a radius: 0 up, 90 left. */
export function spot(azimuth, radius) {
  const angle = (azimuth * Math.PI) / 180;
  return [-Math.sin(angle) * radius, -Math.cos(angle) * radius];
}

const at = (azimuth, radius) => spot(azimuth, radius).map((value) => value.toFixed(2)).join(" ");

function arc(from, to, radius) {
  const large = to - from > 180 ? 1 : 0; // counter-clockwise on the screen: the sweep flag is 0
  return `M${at(from, radius)}A${radius} ${radius} 0 ${large} 0 ${at(to, radius)}`;
}

export class Circle {
  /** svg: to draw into. onPick: called with an azimuth when somebody chooses one. */
  constructor(svg, onPick) {
    this.svg = svg;
    this.onPick = onPick;
    this.people = new Map();
    this.azimuth = 0;
    this.picking = false;
    this.picture = svg.querySelector("g");
    this.drawGround();
    this.drawKnob();
  }

  drawGround() {
    const layer = (name) => draw("g", { class: name });
    const ground = layer("ground");
    for (const share of [0, 0.5, 1]) ground.append(draw("circle", { r: INNER + share * (OUTER - INNER), class: "ring" }));
    for (let azimuth = 0; azimuth < 360; azimuth += 15) {
      const length = azimuth % 45 ? 2 : 4;
      ground.append(draw("path", { d: `M${at(azimuth, RING - length)}L${at(azimuth, RING)}`, class: "tick" }));
    }
    ground.append(draw("circle", { r: RING, class: "rim" }));
    for (const [azimuth, [x, y]] of Object.entries(LABELS)) {
      const label = draw("text", { x, y, class: "label" }, `${azimuth}°`);
      label.append(draw("tspan", { x, dy: 9.5, class: "word" }, direction(Number(azimuth))));
      ground.append(label);
    }
    this.taught = draw("path", { class: "taught" });
    this.shape = draw("path", { class: "scores" });
    this.microphones = layer("microphones");
    this.marks = layer("marks");
    this.tracks = layer("tracks");
    this.ring = draw("path", { class: "countdown" });
    this.number = draw("text", { class: "countdown-number", y: 1 });
    this.picture.append(ground, this.taught, this.shape, this.microphones, this.marks, this.tracks, this.ring, this.number);
  }

  drawKnob() {
    this.band = draw("circle", { r: RING, class: "band" });
    this.knob = draw("g", {
      class: "knob", role: "slider", tabindex: "0", "aria-label": "Direction", "aria-valuemin": "0",
      "aria-valuemax": "359",
    });
    this.pointer = draw("path", { class: "pointer" });
    this.grip = draw("circle", { r: 8, class: "grip" });
    this.knob.append(this.pointer, this.grip);
    this.svg.append(this.band, this.knob);
    this.knob.addEventListener("keydown", (event) => this.pressed(event));
    this.svg.addEventListener("click", (event) => this.picking && this.pointed(event));
    for (const node of [this.band, this.knob]) {
      node.addEventListener("pointerdown", (event) => node.setPointerCapture(event.pointerId));
      node.addEventListener("pointermove", (event) => {
        if (this.picking && node.hasPointerCapture(event.pointerId)) this.pointed(event);
      });
    }
    this.pick(false);
  }

  pressed(event) {
    const steps = { ArrowLeft: 1, ArrowUp: 1, ArrowRight: -1, ArrowDown: -1, PageUp: 15, PageDown: -15 };
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key in steps) this.choose(this.azimuth + steps[event.key] * (event.shiftKey ? 10 : 1));
    else if (event.key === "Home") this.choose(0);
    else return;
    event.preventDefault();
  }

  pointed(event) {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
    if (Math.hypot(point.x, point.y) < 8) return; // the middle is no direction
    const azimuth = (Math.atan2(-point.x, -point.y) * 180) / Math.PI;
    this.choose(Math.round(azimuth / TAPPED) * TAPPED);
  }

  choose(azimuth) {
    this.point(azimuth);
    this.onPick(this.azimuth);
  }

  /** Turn the knob to an azimuth. */
  point(azimuth) {
    this.azimuth = Math.round(wrap(azimuth)) % 360;
    const [x, y] = spot(this.azimuth, RING);
    this.grip.setAttribute("cx", x);
    this.grip.setAttribute("cy", y);
    this.pointer.setAttribute("d", `M${at(this.azimuth, INNER)}L${at(this.azimuth, RING - 9)}`);
    this.knob.setAttribute("aria-valuenow", String(this.azimuth));
    this.knob.setAttribute("aria-valuetext", `${this.azimuth} degrees, ${direction(this.azimuth)}`);
  }

  /** Whether a direction can be chosen. */
  pick(on) {
    this.picking = on;
    this.svg.classList.toggle("picking", on);
    for (const node of [this.band, this.knob]) node.toggleAttribute("hidden", !on);
    this.knob.setAttribute("tabindex", on ? "0" : "-1");
    this.point(this.azimuth);
  }

  /** Where the microphones are: positions in metres, front x, left y. */
  array(positions) {
    const reach = Math.max(...positions.map(([x, y]) => Math.hypot(x, y)), 1e-6);
    const scale = (INNER - 12) / reach;
    this.microphones.replaceChildren(
      ...positions.map(([x, y]) => draw("circle", { cx: -y * scale, cy: -x * scale, r: 2 })),
    );
  }

  /** scores: 0 to 1, evenly around the circle from 0 degrees; null in silence. */
  scores(values) {
    if (!values) {
      this.shape.setAttribute("d", "");
      return;
    }
    const step = 360 / values.length;
    const points = values.map((value, n) => at(n * step, INNER + Math.min(Math.max(value, 0), 1) * (OUTER - INNER)));
    this.shape.setAttribute("d", `M${points.join("L")}Z${hole(INNER)}`);
  }

  /** People, as in an update. */
  follow(tracks) {
    const gone = new Set(this.people.keys());
    for (const track of tracks) {
      gone.delete(track.id);
      const person = this.people.get(track.id) ?? this.enter(track.id);
      const [x, y] = spot(track.azimuth, RING);
      person.classList.toggle("silent", !track.speaking);
      person.querySelector(".ray").setAttribute("d", `M${at(track.azimuth, INNER)}L${at(track.azimuth, RING - 8)}`);
      person.querySelector(".disc").setAttribute("transform", `translate(${x} ${y})`);
    }
    for (const id of gone) {
      this.people.get(id).remove();
      this.people.delete(id);
    }
  }

  enter(id) {
    const disc = draw("g", { class: "disc" }, draw("circle", { r: 8.5 }), draw("text", { y: 0.5 }, String(id)));
    const person = draw("g", { class: `person c${colourOf(id)}` }, draw("path", { class: "ray" }), disc);
    this.tracks.append(person);
    this.people.set(id, person);
    return person;
  }

  /** Frames taught around the circle, or null. */
  evidence(frames) {
    const most = Math.max(...(frames ?? [0]), 1);
    const step = 360 / (frames?.length ?? 1);
    const bars = (frames ?? []).map((n, k) => {
      const middle = (k + 0.5) * step;
      return n ? `M${at(middle, TAUGHT)}L${at(middle, TAUGHT + EVIDENCE * Math.sqrt(n / most))}` : "";
    });
    this.taught.setAttribute("d", bars.join(""));
  }

  /** Takes: azimuths that were recorded, numbered; null where nobody knows. */
  mark(azimuths) {
    this.marks.replaceChildren(
      ...azimuths.map((azimuth, n) => {
        if (azimuth === null) return "";
        const [x, y] = spot(azimuth, RING);
        return draw("g", { transform: `translate(${x} ${y})` }, draw("circle", { r: 6 }), draw("text", { y: 0.5 }, String(n + 1)));
      }),
    );
  }

  /** A ring that closes: share done, 0 to 1, with a word in the middle; null takes it away. */
  progress(share, word = "") {
    const to = Math.min(Math.max(share ?? 0, 0), 0.9999) * 360;
    this.ring.setAttribute("d", to > 0 ? arc(0, to, INNER - 5) : "");
    this.number.textContent = share === null ? "" : word;
    this.svg.classList.toggle("recording", share !== null);
  }
}

const hole = (radius) => `M0 ${-radius}A${radius} ${radius} 0 1 1 0 ${radius}A${radius} ${radius} 0 1 1 0 ${-radius}Z`;
