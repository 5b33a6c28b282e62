/** A recording of somebody's: sent, looked at, shown; the circle follows the slider. */

import { ask } from "./link.js";
import { byId, chip, make, say, setText, show } from "./dom.js";
import { showTalkers } from "./now.js";
import { linesOf, paint, timeAt } from "./strip.js";
import { capital, count, degrees, direction, duration, place, talking } from "./words.js";

const LARGEST = 64 * 2 ** 20;
const WALKED = 10; // degrees

export class Recording {
  /** shown: called when there is a recording to see. */
  constructor(circle, shown) {
    this.circle = circle;
    this.shown = shown;
    this.result = null;
    this.running = null;
    this.visible = false;
    byId("file").addEventListener("change", (event) => this.take(event.target.files));
    byId("recording-cancel").addEventListener("click", () => this.cancel());
    byId("at").addEventListener("input", () => this.look());
    byId("map").addEventListener("click", (event) => {
      byId("at").value = String(timeAt(event.target, event.offsetX, 0, this.result.seconds));
      this.look();
    });
    this.prepareDrop(byId("drop"));
    new ResizeObserver(() => this.draw()).observe(byId("map"));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => requestAnimationFrame(() => this.draw()));
  }

  prepareDrop(area) {
    const over = (on) => area.classList.toggle("over", on);
    area.addEventListener("submit", (event) => event.preventDefault());
    area.addEventListener("dragover", (event) => {
      event.preventDefault();
      over(true);
    });
    area.addEventListener("dragleave", () => over(false));
    area.addEventListener("drop", (event) => {
      event.preventDefault();
      over(false);
      this.take(event.dataTransfer.files);
    });
  }

  take(files) {
    const message = byId("recording-message");
    const file = files[0];
    if (!file || this.running) return;
    if (files.length > 1) say(message, "One recording at a time, please.", true);
    else if (file.size > LARGEST) say(message, "The file is larger than 64 MB. Cut it, or use tyto locate.", true);
    else if (!file.size) say(message, "The file is empty.", true);
    else this.send(file);
  }

  async send(file) {
    const message = byId("recording-message");
    this.running = new AbortController();
    this.busy(true);
    say(message, `Looking at ${file.name}.`);
    try {
      this.show(await ask("POST", "/api/locate", file, this.running.signal), file.name);
      say(message, "");
      byId("recording-summary").focus({ preventScroll: true });
    } catch (error) {
      if (error.name === "AbortError") say(message, "Cancelled.");
      else say(message, error.message, true);
    } finally {
      this.running = null;
      this.busy(false);
      byId("file").value = "";
    }
  }

  busy(on) {
    byId("file").disabled = on;
    byId("drop").setAttribute("aria-busy", String(on));
    show(byId("recording-cancel"), on);
    if (on) byId("recording-cancel").focus({ preventScroll: true });
  }

  cancel() {
    this.running?.abort();
  }

  show(result, name) {
    this.result = result;
    const step = result.seconds / Math.max(result.map.scores.length, 1);
    this.columns = result.map.scores.map((scores, k) => ({
      time: k * step, scores: scores.map((score) => score / 100),
    }));
    this.lines = linesOf(result.frames);
    this.step = step;
    setText(byId("recording-summary"), `${capital(result.summary)}.`);
    setText(byId("recording-facts"), `${name} · ${duration(result.seconds)} · ${count(result.n_frames, "frame", "frames")}`);
    this.table(result.segments);
    const slider = byId("at");
    Object.assign(slider, { max: String(result.seconds), value: "0" });
    const first = result.segments[0];
    if (first) slider.value = String((first.start + first.end) / 2);
    show(byId("recording-result"), true);
    this.shown();
    this.look();
  }

  table(segments) {
    const rows = segments.map(({ id, start, end, azimuth, first, last }) => {
      const moved = Math.abs(((last - first + 540) % 360) - 180) > WALKED;
      const where = moved ? `${degrees(first)} to ${degrees(last)}, ${direction(last)}` : place(azimuth);
      const cells = [duration(start), duration(end), where].map((text) => make("td", {}, text));
      return make("tr", {}, make("th", { scope: "row" }, chip(id)), ...cells);
    });
    byId("segments").tBodies[0].replaceChildren(...rows);
  }

  /** Show the moment that the slider is at. */
  look() {
    if (!this.result) return;
    const time = Number(byId("at").value);
    const frame = this.result.frames.reduce(
      (best, one) => (Math.abs(one.time - time) < Math.abs(best.time - time) ? one : best),
      this.result.frames[0] ?? { time: 0, tracks: [] },
    );
    const column = this.columns[Math.min(Math.floor(time / this.step), this.columns.length - 1)];
    const words = talking(frame.tracks);
    byId("at").setAttribute("aria-valuetext", `${duration(time)}: ${words}`);
    setText(byId("at-text"), `${duration(time)}: ${words}`);
    if (this.visible) {
      this.circle.scores(column?.scores ?? null);
      this.circle.follow(frame.tracks);
      showTalkers(frame.tracks);
    }
    this.draw();
  }

  draw() {
    if (!this.result || !this.visible) return;
    paint(byId("map"), {
      columns: this.columns, hop: this.step, lines: this.lines, from: 0, to: this.result.seconds,
      label: (time) => (time < 60 ? `${Number(time.toFixed(1))} s` : duration(time)), cursor: Number(byId("at").value),
    });
  }
}
