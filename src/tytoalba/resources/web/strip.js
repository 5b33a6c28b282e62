/** Azimuth over time on a canvas: scores as a shade, people as lines. Back at both edges, front in the middle. */

import { apart, wrap } from "./words.js";
import { colourOf, colours, rgb } from "./dom.js";

const LEFT = 52, RIGHT = 8, BELOW = 20, ABOVE = 8; // px for labels
const JOINED = 30; // degrees: a jump that is no line
const PAUSE = 0.4; // s: so is a longer gap
const AXIS = [[180, "back"], [90, "left"], [0, "front"], [270, "right"], [180, "back"]];

/** The time at a place of the canvas, in px from its left edge. */
export function timeAt(canvas, px, from, to) {
  const share = (px - LEFT) / (canvas.getBoundingClientRect().width - LEFT - RIGHT);
  return from + Math.min(Math.max(share, 0), 1) * (to - from);
}

/** From the top, 0 to 1: 180 down to 90, 0, 270, 180. */
export const height = (azimuth) => (180 - (wrap(azimuth + 180) - 180)) / 360;

/**
 * Draw. columns: [{time, scores}], scores 0 to 1 from 0 degrees; hop: seconds that a column is wide;
 * lines: [{id, points: [[time, azimuth, speaking], ...]}]; from, to: seconds; label: seconds to words;
 * origin: a time that has a label; cursor: seconds, if any.
 */
export function paint(canvas, { columns, hop, lines, from, to, label, origin = 0, cursor = null }) {
  const context = fitted(canvas);
  if (!context) return;
  const { width, height: tall } = canvas.getBoundingClientRect();
  const box = { x: LEFT, y: ABOVE, w: width - LEFT - RIGHT, h: tall - BELOW - ABOVE };
  const x = (time) => box.x + ((time - from) / (to - from)) * box.w;
  const y = (azimuth) => box.y + height(azimuth) * box.h;
  context.clearRect(0, 0, width, tall);
  shade(context, box, { columns, hop, from, to });
  axes(context, box, { from, to, label, origin, x });
  context.save();
  context.beginPath();
  context.rect(box.x, box.y - 3, box.w + 4, box.h + 6);
  context.clip();
  for (const line of lines) stroke(context, line, x, y);
  context.restore();
  if (cursor !== null) rule(context, x(cursor), box);
}

/** The canvas at the resolution of the screen; null where it is not on the screen. */
function fitted(canvas) {
  const { width, height: tall } = canvas.getBoundingClientRect();
  if (!width || !tall) return null;
  const ratio = Math.min(window.devicePixelRatio || 1, 3);
  const [w, h] = [Math.round(width * ratio), Math.round(tall * ratio)];
  if (canvas.width !== w || canvas.height !== h) Object.assign(canvas, { width: w, height: h });
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

const shades = document.createElement("canvas");
const ROWS = 120;

function shade(context, box, { columns, hop, from, to }) {
  const n = Math.max(Math.round((to - from) / hop), 1);
  Object.assign(shades, { width: n, height: ROWS });
  const small = shades.getContext("2d");
  const image = small.createImageData(n, ROWS);
  const [r, g, b] = rgb(colours().accent);
  for (const { time, scores } of columns) {
    const column = Math.round((time - from) / hop);
    if (!scores || column < 0 || column >= n) continue;
    for (let row = 0; row < ROWS; row += 1) {
      const azimuth = 180 - ((row + 0.5) / ROWS) * 360;
      const score = scores[Math.floor((wrap(azimuth) / 360) * scores.length)];
      image.data.set([r, g, b, Math.min(score, 1) ** 2 * 150], 4 * (row * n + column));
    }
  }
  small.putImageData(image, 0, 0);
  context.imageSmoothingEnabled = true;
  context.drawImage(shades, box.x, box.y, box.w, box.h);
}

function axes(context, box, { from, to, label, origin, x }) {
  const { soft, line } = colours();
  context.font = `12px ${getComputedStyle(document.body).fontFamily}`;
  context.fillStyle = soft;
  context.strokeStyle = line;
  context.lineWidth = 1;
  context.textBaseline = "middle";
  context.textAlign = "right";
  AXIS.forEach(([, name], k) => {
    const at = Math.round(box.y + (k / 4) * box.h) + 0.5;
    context.beginPath();
    context.moveTo(box.x, at);
    context.lineTo(box.x + box.w, at);
    context.stroke();
    context.fillText(name, box.x - 8, at);
  });
  context.textBaseline = "bottom";
  const step = roundStep((to - from) / Math.max(box.w / 90, 2));
  for (let time = origin + Math.ceil((from - origin) / step) * step; time <= to + 1e-6; time += step) {
    context.textAlign = x(time) > box.x + box.w - 20 ? "right" : "center";
    context.fillText(label(time), x(time), box.y + box.h + BELOW);
  }
}

/** The next larger of 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300 seconds. */
const roundStep = (least) => [0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300].find((step) => step >= least) ?? 600;

function stroke(context, { id, points }, x, y) {
  context.strokeStyle = colours().tracks[colourOf(id)];
  context.lineCap = "round";
  for (let k = 0; k < points.length; k += 1) {
    const [time, azimuth, speaking] = points[k];
    const [before, last] = points[k - 1] ?? [-Infinity, 0];
    const joined = time - before < PAUSE && apart(last, azimuth) < JOINED && Math.abs(height(last) - height(azimuth)) < 0.5;
    context.globalAlpha = speaking ? 1 : 0.35;
    context.lineWidth = speaking ? 3.5 : 1.5;
    context.beginPath();
    context.moveTo(x(joined ? before : time), y(joined ? last : azimuth));
    context.lineTo(x(time), y(azimuth));
    context.stroke();
  }
  context.globalAlpha = 1;
}

function rule(context, at, box) {
  context.strokeStyle = colours().ink;
  context.lineWidth = 1.5;
  context.beginPath();
  context.moveTo(at, box.y - 3);
  context.lineTo(at, box.y + box.h + 3);
  context.stroke();
}

/** Scores from 0 to 1000 as the highest of each row, 0 to 1. */
function highest(scores) {
  if (!scores) return null;
  const each = scores.length / ROWS;
  return Array.from({ length: ROWS }, (_, row) => Math.max(...scores.slice(row * each, (row + 1) * each)) / 1000);
}

/** What was heard in the last seconds, as `paint` takes it. Time that jumps back begins anew. */
export class Past {
  constructor(seconds) {
    this.seconds = seconds;
    this.frames = [];
  }

  get end() {
    return this.frames.at(-1)?.time ?? 0;
  }

  add(update) {
    if (update.time <= this.end) this.frames = [];
    this.frames.push({ time: update.time, tracks: update.tracks, scores: highest(update.scores) });
    while (this.frames[0].time < this.end - this.seconds) this.frames.shift();
  }

  get hop() {
    const [before, last] = this.frames.slice(-2);
    return last ? Math.min(Math.max(last.time - before.time, 0.02), 0.5) : 0.1;
  }

  get picture() {
    return {
      columns: this.frames, hop: this.hop, lines: linesOf(this.frames), from: this.end - this.seconds, to: this.end,
      origin: this.end,
      label: (time) => (Math.round(time - this.end) ? `${Math.round(time - this.end)} s` : "now"),
    };
  }
}

/** The way of everybody through frames. */
export function linesOf(frames) {
  const lines = new Map();
  for (const { time, tracks } of frames) {
    for (const { id, azimuth, speaking } of tracks) {
      if (!lines.has(id)) lines.set(id, []);
      lines.get(id).push([time, azimuth, speaking]);
    }
  }
  return [...lines].map(([id, points]) => ({ id, points }));
}
