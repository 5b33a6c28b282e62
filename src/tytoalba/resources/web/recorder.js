/** Count down, let tyto record from the live sound, and show how far it is: for lessons and takes. */

import { ask } from "./link.js";
import { byId, fill, say, show } from "./dom.js";
import { place } from "./words.js";

const RUNNING = new Set(["recording", "learning"]);

export class Recorder {
  /**
   * name: start of the ids of its form ("teach", "take"); path: where it is asked for; words: messages for
   * "recording", "learning", "done", "cancelled"; done: called with the last message.
   */
  constructor(circle, { name, path, words, done }) {
    Object.assign(this, { circle, name, path, words, done });
    this.phase = "idle"; // "countdown", "asking", "running"
    this.id = null;
    this.timer = 0;
    this.startButton = byId(`${name}-start`);
    this.message = byId(`${name}-message`);
  }

  get busy() {
    return this.phase !== "idle";
  }

  /** wanted: what is sent; delay: seconds to walk there. */
  begin(wanted, delay) {
    if (this.busy) return;
    this.enter("countdown");
    const where = place(wanted.azimuth);
    if (delay) say(this.message, `Go to ${where}. It starts in ${delay} seconds.`);
    this.countDown(delay, delay, wanted);
  }

  countDown(left, delay, wanted) {
    if (!left) {
      this.record(wanted);
      return;
    }
    this.circle.progress((delay - left) / delay, String(left));
    this.timer = setTimeout(() => this.countDown(left - 1, delay, wanted), 1000);
  }

  async record(wanted) {
    this.enter("asking");
    try {
      const answer = await ask("POST", this.path, wanted);
      if (this.phase === "asking") {
        this.id = answer?.id ?? null;
        this.enter("running");
      }
    } catch (error) {
      this.end(error.message, true);
    }
  }

  /** A message of tyto about it. It may also be one that another page started. */
  told(message) {
    if (RUNNING.has(message.state)) {
      clearTimeout(this.timer);
      this.id = message.id;
      this.enter("running");
      const left = Math.max(Math.ceil(message.seconds - message.recorded), 0);
      const heard = message.heard / message.seconds;
      this.circle.progress(message.recorded / message.seconds, message.state === "recording" ? String(left) : "…");
      fill(byId(`${this.name}-bar`), heard, Math.round(100 * heard));
      say(this.message, this.words[message.state](message));
    } else if (this.busy) {
      const failed = message.state === "failed";
      this.end(failed ? message.error : this.words[message.state](message), failed);
      this.done(message);
    }
  }

  /** Take back what runs; where it only counts down, nobody has to be asked. */
  async cancel() {
    if (this.phase === "countdown") this.end(this.words.cancelled());
    else if (this.phase === "running" && this.words.cancel) await this.words.cancel().catch((error) => say(this.message, error.message, true));
  }

  /** The connection is back: what became of what ran? find: its newest message; null where tyto knows none. */
  async resume(find) {
    if (this.phase !== "running") return;
    const found = await find(this.id).catch(() => null);
    if (found) this.told(found);
    else {
      this.end("tyto was started again meanwhile, and this was lost. Please do it again.", true);
      this.done({ state: "failed" });
    }
  }

  enter(phase) {
    if (this.phase === phase) return;
    this.phase = phase;
    const busy = phase !== "idle";
    this.startButton.disabled = busy;
    show(byId(`${this.name}-progress`), phase === "running");
    const cancel = byId(`${this.name}-cancel`);
    show(cancel, phase === "countdown" || (busy && Boolean(this.words.cancel)));
    if (busy && document.activeElement === document.body && !cancel.hidden) cancel.focus();
    document.body.classList.toggle("busy", busy);
  }

  end(text, bad = false) {
    clearTimeout(this.timer);
    const held = document.activeElement === byId(`${this.name}-cancel`);
    this.id = null;
    this.enter("idle");
    this.circle.progress(null);
    say(this.message, text, bad);
    if (held || document.activeElement === document.body) this.startButton.focus({ preventScroll: true });
  }
}

/** Number field and knob say the same. */
export function join(circle, field) {
  field.addEventListener("input", () => {
    if (field.value !== "" && field.checkValidity()) circle.point(Number(field.value));
  });
  return (azimuth) => { field.value = String(azimuth); };
}
