/** Teach a direction, see what was learned, forget it again. */

import { ask } from "./link.js";
import { byId, make, say, setText, show } from "./dom.js";
import { Recorder, join } from "./recorder.js";
import { confirmed } from "./dialogs.js";
import { capital, count, moment, place } from "./words.js";

const SHORT = 12; // letters of a digest

export class Teach {
  /** stored: called with what is stored whenever it was read. */
  constructor(circle, stored) {
    this.circle = circle;
    this.stored = stored;
    this.known = new Map(); // digest -> when the state was like this
    this.digest = null;
    this.lessons = [];
    this.long = false;
    this.field = byId("teach-azimuth");
    this.picked = join(circle, this.field);
    this.recorder = new Recorder(circle, {
      name: "teach", path: "/api/lessons", done: () => this.read(),
      words: {
        recording: () => "Talk now.",
        learning: () => "Learning.",
        done: (lesson) => `Learned ${count(lesson.frames, "frame", "frames")} at ${place(lesson.azimuth)}.`,
        cancelled: () => "Cancelled. Nothing was learned.",
        cancel: () => ask("DELETE", "/api/lessons/current"),
      },
    });
    byId("teach-form").addEventListener("submit", (event) => this.start(event));
    byId("teach-cancel").addEventListener("click", () => this.recorder.cancel());
    byId("digest-more").addEventListener("click", () => this.unfold());
  }

  /** What the state of tyto says of teaching. */
  state({ can_teach: can, why_not_teach: why, localizer }) {
    this.why = localizer === null ? why : null;
    setText(byId("teach-not"), capital(why ?? ""));
    show(byId("teach-not"), !can);
    show(byId("teach-form"), can);
    show(byId("lessons-card"), can);
  }

  start(event) {
    event.preventDefault();
    const azimuth = Number(this.field.value);
    const who = byId("teach-who").value.trim() || this.freeName(azimuth);
    this.remember(`before “${who}” was taught`);
    this.recorder.begin({ azimuth, seconds: Number(byId("teach-seconds").value), who }, Number(byId("teach-delay").value));
  }

  /** A name where none was given: the direction, with a number if there is one already. */
  freeName(azimuth) {
    const taken = new Set(this.lessons.map((lesson) => lesson.who));
    const name = `${azimuth} degrees`;
    if (!taken.has(name)) return name;
    let n = 2;
    while (taken.has(`${name} ${n}`)) n += 1;
    return `${name} ${n}`;
  }

  /** The connection is there, or back. */
  async resume() {
    await this.recorder.resume(async (id) => {
      const last = await ask("GET", "/api/lessons/last");
      return last.id === id ? last : null;
    });
    await this.read();
  }

  async read() {
    if (this.why) return this.stored(null, new Error(this.why));
    try {
      this.show(await ask("GET", "/api/localizer"));
    } catch (error) {
      this.stored(null, error);
    }
  }

  show(stored) {
    this.lessons = stored.lessons;
    this.change(stored.digest);
    byId("lessons").replaceChildren(...stored.lessons.map((lesson) => this.row(lesson)));
    show(byId("lessons-none"), stored.lessons.length === 0);
    this.stored(stored, null);
  }

  row(lesson) {
    const places = lesson.azimuth.map(place).join(" and ");
    const facts = [places, count(lesson.n_frames, "frame", "frames")];
    if (lesson.when) facts.push(moment(lesson.when));
    const name = lesson.who || "a lesson without a name";
    const button = make("button", { type: "button", "aria-label": `Forget ${name}` }, "Forget");
    button.addEventListener("click", () => this.forget(lesson.id, name));
    const words = make("div", {}, make("strong", {}, name), make("span", { class: "soft" }, facts.join(" · ")));
    return make("li", {}, words, button);
  }

  async forget(id, who) {
    const text = "The state becomes the one that was never taught this, to the byte. Copies and backups still know it.";
    if (!(await confirmed(`Forget “${who}”?`, text))) return;
    const message = byId("lessons-message");
    this.remember(`before “${who}” was forgotten`);
    say(message, "Forgetting.");
    if (!this.recorder.busy) say(byId("teach-message"), "");
    try {
      const answer = await ask("DELETE", `/api/lessons?id=${encodeURIComponent(id)}`);
      await this.read();
      const same = this.known.get(this.digest);
      const proof = same ? ` The state is the same as ${same}.` : "";
      say(message, `Forgot ${count(answer.frames, "frame", "frames")}.${proof}`);
      setText(byId("digest-same"), same ? `the same as ${same}` : "");
      show(byId("digest-same"), Boolean(same));
    } catch (error) {
      say(message, error.message, true);
    }
    byId("lessons-title").focus({ preventScroll: true });
  }

  /** The state as it is now is known by these words, unless it has been seen earlier. */
  remember(words) {
    if (this.digest && !this.known.has(this.digest)) this.known.set(this.digest, words);
  }

  change(digest) {
    if (digest !== this.digest) show(byId("digest-same"), false);
    this.digest = digest;
    show(byId("digest-row"), Boolean(digest));
    const shown = this.long ? digest : `${digest.slice(0, SHORT)}…`;
    setText(byId("digest"), shown);
  }

  unfold() {
    this.long = !this.long;
    const button = byId("digest-more");
    button.setAttribute("aria-expanded", String(this.long));
    setText(button, this.long ? "show less" : "show all");
    this.change(this.digest);
  }
}
