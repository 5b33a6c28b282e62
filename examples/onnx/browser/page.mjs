// The page: a file comes in, its scores are drawn. Nothing leaves the browser.
import * as ort from "onnxruntime-web";
import { SILENCE_DB, azimuth, locate, readWav } from "./locate.mjs";

ort.env.wasm.numThreads = 1; // more need a page that is isolated from others
const status = document.querySelector("output");
const canvas = document.querySelector("canvas");
const session = ort.InferenceSession.create("model.onnx");
/** What was found in the last file. */
export let found = null;

document.querySelector("input").addEventListener("change", async ({ target }) => {
  if (!target.files.length) return;
  found = null;
  status.textContent = "listening...";
  try {
    found = await locate(ort, await session, readWav(await target.files[0].arrayBuffer()));
    const heard = found.levels.map((level) => level >= SILENCE_DB);
    draw(found.scores, heard);
    const loud = found.scores.filter((_, k) => heard[k]);
    const where = loud.length ? `most often at ${usual(loud)} degrees` : "nothing but silence";
    status.textContent = `${heard.length} frames, ${loud.length} with sound; ${where}`;
  } catch (error) {
    status.textContent = error.message;
  }
});

/** The azimuth that most frames point to. */
function usual(scores) {
  const count = new Array(360).fill(0);
  for (const one of scores) count[azimuth(one)] += 1;
  return azimuth(count);
}

/** Time from left to right, azimuth from 0 at the bottom to 359 at the top, high scores dark, silence white. */
function draw(scores, heard) {
  canvas.width = scores.length;
  canvas.height = 360;
  const context = canvas.getContext("2d");
  const image = context.createImageData(scores.length, 360);
  scores.forEach((one, x) =>
    one.forEach((score, degree) => {
      const at = 4 * ((359 - degree) * scores.length + x);
      image.data[at + 3] = heard[x] ? 255 * Math.max(0, Math.min(1, score)) : 0; // black, more or less transparent
    }),
  );
  context.putImageData(image, 0, 0);
}
