/** Numbers in words. Azimuth is in degrees: 0 the front, 90 the left. */

const NAMES = ["front", "front left", "left", "back left", "back", "back right", "right", "front right"];

export const wrap = (azimuth) => ((azimuth % 360) + 360) % 360;

/** The nearest of eight names: 40 is "front left". */
export const direction = (azimuth) => NAMES[Math.round(wrap(azimuth) / 45) % 8];

export const degrees = (azimuth) => `${Math.round(wrap(azimuth)) % 360}°`;

export const place = (azimuth) => `${degrees(azimuth)}, ${direction(azimuth)}`;

/** Degrees from one azimuth to another, at most 180. */
export const apart = (a, b) => Math.abs(wrap(a - b + 180) - 180);

/** Who talks where, in one line. */
export function talking(tracks) {
  const now = tracks.filter((track) => track.speaking);
  if (!now.length) return "Nobody talks";
  return now.map((track) => `${track.id} at ${place(track.azimuth)}`).join(" · ");
}

/** The same for the ear: a sentence, rounded so that it changes only when somebody comes, goes or walks. */
export function talkingAloud(tracks) {
  const now = tracks.filter((track) => track.speaking);
  if (!now.length) return "Nobody talks.";
  const parts = now.map((track) => {
    const rounded = wrap(Math.round(track.azimuth / 10) * 10);
    return `number ${track.id} at about ${rounded} degrees, ${direction(rounded)}`;
  });
  return `Talking: ${parts.join("; ")}.`;
}

/** A length of time: "0.4 s", "12 s", "3:05 min". */
export function duration(seconds) {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")} min`;
}

export function bytes(n) {
  if (n < 1000) return `${n} bytes`;
  return n < 1e6 ? `${(n / 1000).toFixed(1)} kB` : `${(n / 1e6).toFixed(1)} MB`;
}

export const count = (n, one, many) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;

/** A moment, as the clock of this device shows it; from ISO 8601 or seconds since 1970. */
export function moment(when) {
  const date = new Date(typeof when === "number" ? when * 1000 : when ?? NaN);
  if (Number.isNaN(date.getTime())) return "unknown";
  return date.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

export const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
