/** Calibrate by talking: takes from known directions, then what they say of the array. */

import { ask } from "./link.js";
import { byId, make, say, setText, show } from "./dom.js";
import { Recorder, join } from "./recorder.js";
import { capital, duration, place } from "./words.js";

export class Calibrate {
  constructor(circle) {
    this.circle = circle;
    this.takes = [];
    this.toml = null;
    this.visible = false;
    this.field = byId("take-azimuth");
    this.picked = join(circle, this.field);
    this.recorder = new Recorder(circle, {
      name: "take", path: "/api/takes", done: () => this.read(),
      words: {
        recording: () => "Talk now.",
        learning: () => "Nearly done.",
        done: (take) => `The take at ${place(take.azimuth)} is there.`,
        cancelled: () => "Cancelled.",
      },
    });
    byId("take-form").addEventListener("submit", (event) => this.start(event));
    byId("take-cancel").addEventListener("click", () => this.recorder.cancel());
    byId("take-drop").addEventListener("click", () => this.drop());
    byId("check").addEventListener("click", () => this.check());
    byId("array-save").addEventListener("click", () => this.save());
  }

  start(event) {
    event.preventDefault();
    const wanted = { azimuth: Number(this.field.value), seconds: Number(byId("take-seconds").value) };
    this.recorder.begin(wanted, Number(byId("take-delay").value));
  }

  /** The connection is there, or back: takes are in the memory of tyto, and gone if it was started again. */
  async resume() {
    await this.recorder.resume(async (id) => {
      const { takes, recording } = await ask("GET", "/api/takes");
      const found = takes.find((take) => take.id === id);
      if (found) return { ...found, state: "done" };
      return recording ? { id, state: "recording", seconds: 1, recorded: 0, heard: 0 } : null;
    });
    await this.read();
  }

  async read() {
    try {
      this.show(await ask("GET", "/api/takes"));
    } catch (error) {
      say(byId("take-message"), error.message, true);
    }
  }

  show({ takes }) {
    this.takes = takes;
    const rows = takes.map((take, n) => {
      const heard = `${duration(take.heard)} heard`;
      const words = make("div", {}, make("strong", {}, take.azimuth === null ? "unknown direction" : place(take.azimuth)), make("span", { class: "soft" }, heard));
      return make("li", {}, make("span", { class: "chip take" }, String(n + 1)), words);
    });
    byId("takes").replaceChildren(...rows);
    byId("check").disabled = takes.length === 0;
    show(byId("take-drop"), takes.length > 0);
    if (this.visible) this.circle.mark(this.azimuths);
  }

  get azimuths() {
    return this.takes.map((take) => take.azimuth);
  }

  async drop() {
    try {
      await ask("DELETE", "/api/takes");
      await this.read();
      say(byId("take-message"), "All takes are gone.");
      this.findings([], null);
      byId("take-start").focus();
    } catch (error) {
      say(byId("take-message"), error.message, true);
    }
  }

  async check() {
    const message = byId("check-message");
    byId("check").disabled = true;
    say(message, "Checking. This takes a few seconds.");
    try {
      const { findings, array_toml: toml } = await ask("GET", "/api/check");
      this.findings(findings, toml);
      const faults = findings.filter((finding) => finding.kind === "fault").length;
      say(message, faults ? "Something is wrong with the array." : "No fault was found.");
    } catch (error) {
      say(message, error.message, true);
    } finally {
      byId("check").disabled = this.takes.length === 0;
      if (document.activeElement === document.body) byId("check").focus();
    }
  }

  findings(findings, toml) {
    const rows = findings.map(({ kind, what, evidence, confidence, remedy }) => {
      const parts = [make("p", {}, make("span", { class: `kind ${kind === "fault" ? "fault" : "fine"}` }, capital(kind)), ` ${capital(what)}`)];
      const because = [evidence, confidence].filter(Boolean).join("; ");
      if (because) parts.push(make("p", { class: "soft small" }, capital(because)));
      if (remedy) parts.push(make("p", { class: "remedy" }, capital(remedy)));
      return make("li", {}, ...parts);
    });
    byId("findings").replaceChildren(...rows);
    this.toml = toml;
    setText(byId("array-toml"), toml ?? "");
    show(byId("array-file"), Boolean(toml));
  }

  save() {
    const address = URL.createObjectURL(new Blob([this.toml], { type: "application/toml" }));
    make("a", { href: address, download: "array.toml" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  }
}
