/** The page of `tyto serve`: joins connection, circle and views. */

import { Calibrate } from "./calibrate.js";
import { Circle } from "./circle.js";
import { prepareShortcuts, prepareToken, signIn, tokenInAddress } from "./dialogs.js";
import { byId, setText, show } from "./dom.js";
import { Link, ask } from "./link.js";
import { Now } from "./now.js";
import { Recording } from "./recording.js";
import { showStored } from "./stored.js";
import { Teach } from "./teach.js";

const VIEWS = ["live", "teach", "recording", "calibrate", "stored"];
const CONNECTION = { connecting: "Connecting", lost: "No connection", locked: "Locked" };
const INPUT = { listening: "Listening", waiting: "Waiting for sound", ended: "Recording ended", none: "No input" };

const circle = new Circle(byId("circle"), (azimuth) => {
  if (view === "teach") teach.picked(azimuth);
  if (view === "calibrate") calibrate.picked(azimuth);
});
const now = new Now(circle);
const teach = new Teach(circle, stored);
const recording = new Recording(circle, () => { now.owned = view !== "recording"; });
const calibrate = new Calibrate(circle);
let view = null;
let status = "connecting";
let state = null;
let evidence = null;

function stored(found, error) {
  evidence = found?.evidence ?? null;
  showStored(found, error);
  dress();
}

/** What the circle shows beside the scores depends on the view. */
function dress() {
  const picking = view === "calibrate" || (view === "teach" && Boolean(state?.can_teach));
  circle.pick(picking);
  circle.evidence(view === "teach" || view === "stored" ? evidence : null);
  circle.mark(view === "calibrate" ? calibrate.azimuths : []);
}

function turn() {
  const wanted = location.hash.slice(1);
  const before = view;
  view = VIEWS.includes(wanted) ? wanted : "live";
  for (const name of VIEWS) {
    show(byId(`view-${name}`), name === view);
    const link = document.querySelector(`nav a[href="#${name}"]`);
    if (name === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.body.dataset.view = view;
  now.visible = view === "live";
  recording.visible = view === "recording";
  calibrate.visible = view === "calibrate";
  now.owned = view !== "recording" || !recording.result;
  if (view === "teach") circle.point(Number(byId("teach-azimuth").value));
  if (view === "calibrate") circle.point(Number(byId("take-azimuth").value));
  dress();
  if (view === "recording") recording.look();
  if (status === "open") refresh();
  now.redraw();
  if (before !== null && before !== view) {
    byId(`${view}-title`).focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }
}

function refresh() {
  if (view === "teach" || view === "stored") teach.read();
  if (view === "calibrate") calibrate.read();
}

function received(message) {
  if (message.type === "update") now.update(message);
  else if (message.type === "lesson") teach.recorder.told(message);
  else if (message.type === "take") calibrate.recorder.told(message);
  else if (message.type === "state") told(message);
}

/** The state of tyto: what it listens to and what it can do. */
function told(message) {
  state = message;
  const { array, input } = message;
  setText(byId("array"), array.name);
  document.title = `tyto · ${array.name}`;
  setText(byId("version"), `tyto ${message.version}`);
  circle.array(array.positions);
  const mirrored = array.ambiguities.find((text) => text.startsWith("front/back"));
  setText(byId("ambiguity"), mirrored ? `This array cannot tell ${mirrored}.` : "");
  show(byId("ambiguity"), Boolean(mirrored));
  now.input(input);
  teach.state(message);
  show(byId("report-item"), message.report);
  show(byId("sign-out"), message.needs_token);
  dress();
  pill();
}

function pill() {
  const open = status === "open" && state;
  const kind = open ? state.input.state : status;
  byId("connection").dataset.state = kind;
  setText(byId("connection-text"), open ? (INPUT[kind] ?? kind) : CONNECTION[status]);
}

async function statusChanged(next) {
  const back = next === "open" && status !== "open";
  if (next === "lost" && status === "open") now.clear();
  status = next;
  pill();
  document.body.classList.toggle("lost", next === "lost");
  setText(byId("banner"), next === "lost" ? "tyto does not answer. Trying again; nothing has to be done here." : "");
  show(byId("banner"), next === "lost");
  if (next === "locked") askForToken();
  if (back) {
    await teach.resume();
    if (view === "calibrate" || calibrate.recorder.busy) await calibrate.resume();
  }
}

const link = new Link({ onMessage: received, onStatus: statusChanged });
const askForToken = prepareToken(() => link.open());

async function begin() {
  const token = tokenInAddress();
  turn();
  window.addEventListener("hashchange", turn);
  byId("skip").addEventListener("click", (event) => {
    event.preventDefault();
    byId("main").focus();
  });
  byId("sign-out").addEventListener("click", async () => {
    await ask("DELETE", "/api/session").catch(() => null);
    location.reload(); // nothing of what was seen stays
  });
  prepareShortcuts(VIEWS, () => {
    teach.recorder.cancel();
    calibrate.recorder.cancel();
    recording.cancel();
  });
  if (token !== null) await signIn(token).catch(() => null);
  link.start();
}

begin();
