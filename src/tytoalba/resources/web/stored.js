/** What is stored, in plain words: what the file holds, and what it does not. */

import { byId, make, setText, show } from "./dom.js";
import { bytes, capital, count, moment } from "./words.js";

const NOT_KEPT = [
  "No sound: not what was heard live, not a recording that you looked at, not a take.",
  "No words, and no voices: who it was is only the name that you gave.",
];

const STATE = "It holds sums of what was taught.";
const MODEL = "It is a model: it locates, and cannot be taught.";

/** stored: as tyto tells it, or null with the error that came instead. */
export function showStored(stored, error) {
  show(byId("stored-body"), Boolean(stored));
  show(byId("stored-not"), !stored);
  if (!stored) {
    setText(byId("stored-lead"), error.status === undefined ? "Nothing: this tyto listens and locates, and keeps nothing." : "");
    setText(byId("stored-not"), capital(error.message));
    return;
  }
  const model = stored.kind === "model";
  setText(byId("stored-lead"), `One file on the machine where tyto runs. ${model ? MODEL : STATE}`);
  facts(stored);
  list(byId("kept"), kept(stored));
  list(byId("not-kept"), NOT_KEPT);
  steps(stored.steps);
  setText(byId("ledger"), stored.ledger ? `The ledger: ${stored.ledger}.` : "");
}

function facts({ file, bytes: size, n_frames: frames, n_lessons: lessons, evidence, lessons: named, budget, digest }) {
  const taught = evidence.filter((n) => n > 0).length * (360 / evidence.length);
  const rows = [
    ["File", file],
    ["Size", bytes(size)],
    ["Taught", frames ? taughtInWords(frames, lessons, named.length) : "nothing yet"],
    ["Directions", taught ? `${taught} of 360 degrees` : "none yet"],
    ["Privacy budget", budgetInWords(budget)],
    ["Digest", make("code", {}, digest)],
  ];
  const nodes = rows.map(([term, words]) => make("div", {}, make("dt", {}, term), make("dd", {}, words)));
  byId("stored-facts").replaceChildren(...nodes);
}

const taughtInWords = (frames, lessons, named) =>
  `${count(frames, "frame", "frames")} in ${count(lessons, "lesson", "lessons")}, of which ${named} can be forgotten by name`;

function budgetInWords(budget) {
  if (!budget) return "none";
  if (budget.spent === null) return `${budget.budget} (epsilon); what was spent of it cannot be told`;
  return `${Number(budget.spent.toPrecision(3))} of ${budget.budget} (epsilon) spent on models given away`;
}

function kept({ kind, lessons }) {
  if (kind === "model") return ["Weights, made from a localizer that was taught, or from none."];
  const items = [
    "Sums over all frames that were taught: numbers from which no single sound can be heard again.",
    "How many frames were taught at each direction. That tells where people stood.",
    "A ledger: what was done and when, signed, without content.",
  ];
  if (lessons.length) items.splice(1, 0, "Of each lesson with a name, its frames as numbers, so that it can be forgotten by name.");
  return items;
}

const list = (node, texts) => node.replaceChildren(...texts.map((text) => make("li", {}, text)));

function steps(lines) {
  const rows = [...lines].reverse().map(({ what, when, frames }) =>
    make("tr", {}, make("td", {}, moment(when)), make("td", {}, capital(what)), make("td", {}, frames ? String(frames) : "–")),
  );
  byId("steps").tBodies[0].replaceChildren(...rows);
  show(byId("steps").tHead, rows.length > 0);
  show(byId("steps-none"), rows.length === 0);
}
