/** The live view: who is there, azimuth over time, and how the sound is. */

import { byId, chip, fill, make, setText, show } from "./dom.js";
import { Past, paint } from "./strip.js";
import { duration, place, talkingAloud } from "./words.js";

const SHOWN = 30; // s
const SPOKEN = 3000; // ms between two sentences for screen readers, at least
const SILENT = -90; // dB: the left end of the meter
const STILL = 250; // ms between two pictures for those who want less motion
const INPUTS = { listening: "Listening", waiting: "Waiting for sound", ended: "The recording has ended", none: "No sound input" };

export class Now {
  constructor(circle) {
    this.circle = circle;
    this.past = new Past(SHOWN);
    this.newest = null;
    this.rows = new Map();
    this.drawn = 0;
    this.asked = false;
    this.spoken = { text: "", time: 0 };
    this.visible = true; // the panel
    this.owned = true; // the circle: another view may show something else in it
    this.calm = matchMedia("(prefers-reduced-motion: reduce)");
    new ResizeObserver(() => this.redraw()).observe(byId("strip"));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
  }

  /** A frame. It is drawn with the next picture of the screen, at most once. */
  update(update) {
    this.newest = update;
    this.past.add(update);
    this.redraw();
    this.speak(update.tracks);
  }

  redraw() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame((time) => {
      this.asked = false;
      if (this.calm.matches && time - this.drawn < STILL) return;
      this.drawn = time;
      this.show();
    });
  }

  show() {
    const { newest } = this;
    if (!newest) return;
    if (this.owned) {
      this.circle.scores(newest.scores?.map((score) => score / 1000));
      this.circle.follow(newest.tracks);
      showTalkers(newest.tracks);
    }
    if (!this.visible) return;
    paint(byId("strip"), this.past.picture);
    this.table(newest);
    this.sound(newest);
  }

  table({ time, tracks }) {
    const body = byId("tracks").tBodies[0];
    const gone = new Set(this.rows.keys());
    for (const track of tracks) {
      gone.delete(track.id);
      const row = this.rows.get(track.id) ?? this.enter(body, track.id);
      const words = [
        place(track.azimuth), `${Math.round(track.probability * 100)} %`, duration(Math.max(time - track.since, 0)),
        track.speaking ? "talks" : "silent",
      ];
      row.classList.toggle("silent", !track.speaking);
      row.firstChild.firstChild.classList.toggle("silent", !track.speaking);
      words.forEach((word, k) => setText(row.children[k + 1], word));
    }
    for (const id of gone) {
      this.rows.get(id).remove();
      this.rows.delete(id);
    }
    show(byId("tracks").tHead, tracks.length > 0);
    show(byId("tracks-none"), tracks.length === 0);
  }

  enter(body, id) {
    const row = make("tr", {}, make("th", { scope: "row" }, chip(id)), ...[0, 1, 2, 3].map(() => make("td")));
    const later = Math.min(...[...this.rows.keys()].filter((other) => other > id));
    body.insertBefore(row, this.rows.get(later) ?? null);
    this.rows.set(id, row);
    return row;
  }

  sound({ level, latency, dropped, faults }) {
    const shown = Math.max(level, SILENT);
    fill(byId("level"), (shown - SILENT) / -SILENT, Math.round(shown));
    setText(byId("level-text"), level <= SILENT ? "silent" : `${Math.round(level)} dB`);
    setText(byId("latency"), latency === null ? "not live" : `${Math.round(latency * 1000)} ms`);
    setText(byId("dropped"), dropped ? `${dropped.toLocaleString("en")} samples` : "nothing");
    this.faults(faults);
  }

  faults(faults) {
    const list = byId("faults");
    const texts = faults.map((fault) => fault.text);
    if (list.dataset.shown !== texts.join("\n")) {
      list.dataset.shown = texts.join("\n");
      list.replaceChildren(...texts.map((text) => make("li", {}, text)));
    }
    show(list, texts.length > 0);
    show(byId("healthy"), texts.length === 0);
  }

  /** In words, for screen readers: only what changed, and not all the time. */
  speak(tracks) {
    if (!this.visible) return;
    const text = talkingAloud(tracks);
    const now = performance.now();
    if (text === this.spoken.text || now - this.spoken.time < SPOKEN) return;
    this.spoken = { text, time: now };
    setText(byId("spoken"), text);
  }

  /** What the state of tyto says of the input. */
  input({ name, state, faults }) {
    setText(byId("input-name"), name || "nothing");
    if (state !== "listening") {
      this.circle.scores(null);
      this.circle.follow([]);
      showTalkers([], INPUTS[state] ?? state);
      setText(byId("tracks-none"), state === "none" ? "This tyto has no sound input." : "Nobody.");
    } else {
      setText(byId("tracks-none"), "Nobody yet. Say something.");
    }
    this.faults(faults ?? []);
  }

  /** Forget what was drawn: another tyto, or the same started again. */
  clear() {
    this.past = new Past(SHOWN);
    this.newest = null;
  }
}

/** Below the circle: a disc and a place for everybody who talks, or words where nobody does. */
export function showTalkers(tracks, otherwise = "Nobody talks") {
  const node = byId("who");
  const talkers = tracks.filter((track) => track.speaking).map(({ id, azimuth }) => ({ id, where: place(azimuth) }));
  const key = talkers.map(({ id, where }) => `${id} ${where}`).join() || otherwise;
  if (node.dataset.shown === key) return;
  node.dataset.shown = key;
  node.replaceChildren(...(talkers.length
    ? talkers.map(({ id, where }) => make("span", { class: "talker" }, chip(id), ` ${where}`)) : [otherwise]));
}
