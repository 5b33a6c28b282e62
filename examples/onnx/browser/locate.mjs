// From a WAV file to scores of directions, with an ONNX file of `tyto export --onnx`. For browsers and node.

/** Samples of a WAV file: {rate, channels: [Float32Array, ...]}. PCM of 16, 24 or 32 bits, or float32. */
export function readWav(buffer) {
  const view = new DataView(buffer);
  const name = (at) => String.fromCharCode(...new Uint8Array(buffer, at, 4));
  if (buffer.byteLength < 12 || name(0) !== "RIFF" || name(8) !== "WAVE") throw new Error("this is no WAV file");
  let format;
  for (let at = 12; at + 8 <= buffer.byteLength; ) {
    const size = view.getUint32(at + 4, true), start = at + 8;
    if (name(at) === "fmt ") {
      let kind = view.getUint16(start, true);
      if (kind === 0xfffe) kind = view.getUint16(start + 24, true); // extensible: the kind is further down
      format = { kind, n: view.getUint16(start + 2, true), rate: view.getUint32(start + 4, true), bits: view.getUint16(start + 14, true) };
    } else if (name(at) === "data") {
      if (!format) break;
      return { rate: format.rate, channels: samples(view, start, Math.min(size, buffer.byteLength - start), format) };
    }
    at = start + size + (size % 2);
  }
  throw new Error("this WAV file is damaged: it has no sound");
}

function samples(view, start, size, { kind, n, bits }) {
  const step = bits / 8;
  const readers = {
    "1/16": (at) => view.getInt16(at, true) / 2 ** 15,
    "1/24": (at) => ((view.getInt8(at + 2) << 16) | view.getUint16(at, true)) / 2 ** 23,
    "1/32": (at) => view.getInt32(at, true) / 2 ** 31,
    "3/32": (at) => view.getFloat32(at, true),
  };
  const read = readers[`${kind}/${bits}`];
  if (!read) throw new Error(`cannot read WAV of kind ${kind} with ${bits} bits: save it with 16 bits`);
  const length = Math.floor(size / (step * n));
  return Array.from({ length: n }, (_, c) => Float32Array.from({ length }, (_, k) => read(start + (k * n + c) * step)));
}

/** Below this level, in dB of full scale, a frame has no direction: the graph gives scores for silence too. */
export const SILENCE_DB = -60;

/** What is found in each frame: {seconds: its middle, levels: dB of full scale, scores: Float32Array(360)}, lists. */
export async function locate(ort, session, { rate, channels }) {
  const [, nMics, length] = session.inputMetadata[0].shape;
  if (channels.length !== nMics) throw new Error(`the array has ${nMics} microphones, the file ${channels.length} channels`);
  if (2 * Math.round((rate * 4096) / 48000) !== length) {
    throw new Error(`frames of ${length} samples are not of ${rate} Hz: resample the file to the array's rate`);
  }
  const hop = length / 2, seconds = [], levels = [], scores = [];
  for (let first = 0; first + length <= channels[0].length; first += hop) {
    const frame = new Float32Array(nMics * length);
    channels.forEach((channel, m) => frame.set(channel.subarray(first, first + length), m * length));
    const found = await session.run({ frames: new ort.Tensor("float32", frame, [1, nMics, length]) });
    scores.push(found.scores.data);
    levels.push(10 * Math.log10(frame.reduce((sum, value) => sum + value * value, 0) / frame.length));
    seconds.push((first + hop) / rate);
  }
  if (!scores.length) throw new Error(`the file is shorter than one frame of ${length} samples`);
  return { seconds, levels, scores };
}

/** The highest score's azimuth in degrees: 0 the array's front, 90 its left. */
export const azimuth = (scores) => scores.indexOf(scores.reduce((a, b) => Math.max(a, b)));
