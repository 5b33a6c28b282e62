/** Talk with tyto: questions over HTTP, updates over a WebSocket that comes back by itself. */

const FIRST_WAIT = 500, LONGEST_WAIT = 5000; // ms between two attempts
const QUIET = 10_000; // ms without a message after which tyto is asked whether it is still there
const PATIENCE = 5000; // ms for an answer to that

/** A refusal in words. status: of HTTP; 0 where nobody answered. */
export class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

/** Ask, and give the answer as it is in JSON, or null. body: a value for JSON, or a file. */
export async function ask(method, path, body, signal) {
  const file = body instanceof Blob;
  const headers = method === "GET" ? {} : { "Content-Type": file ? "application/octet-stream" : "application/json" };
  const content = file || body === undefined ? body : JSON.stringify(body);
  let answer;
  try {
    answer = await fetch(path, { method, headers, body: content, signal, cache: "no-store" });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Refused(0, "tyto does not answer. Is it still running?");
  }
  const text = await answer.text();
  const value = parsed(text);
  if (answer.ok) return value;
  throw new Refused(answer.status, value?.error ?? `tyto refused this (${answer.status}).`);
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/**
 * The stream of updates. It tells its status: "connecting", "open", "lost", "locked" (a token is needed).
 * While the page is hidden it rests.
 */
export class Link {
  constructor({ onMessage, onStatus }) {
    this.onMessage = onMessage;
    this.onStatus = onStatus;
    this.socket = null;
    this.wait = FIRST_WAIT;
    this.timer = 0;
    this.heard = 0;
    this.opening = false;
    this.started = false;
    document.addEventListener("visibilitychange", () => (document.hidden ? this.rest() : this.open()));
    window.addEventListener("online", () => this.open());
    window.addEventListener("pagehide", () => this.rest());
    window.addEventListener("pageshow", () => this.open());
    setInterval(() => this.watch(), QUIET / 2);
  }

  /** Begin; nothing is asked before. */
  start() {
    this.started = true;
    this.open();
  }

  /** Connect, unless that is done or under way. */
  async open() {
    if (!this.started || document.hidden || this.socket || this.opening) return;
    clearTimeout(this.timer);
    this.opening = true;
    try {
      const state = await ask("GET", "/api/state", undefined, AbortSignal.timeout(PATIENCE));
      this.onMessage({ ...state, type: "state" });
      if (!document.hidden) this.listen();
    } catch (error) {
      if (error.status === 401) this.onStatus("locked");
      else this.again();
    } finally {
      this.opening = false;
    }
  }

  listen() {
    const address = new URL("/api/live", location.href);
    address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(address);
    this.socket = socket;
    socket.onopen = () => {
      this.wait = FIRST_WAIT;
      this.heard = performance.now();
      this.onStatus("open");
    };
    socket.onmessage = (event) => {
      this.heard = performance.now();
      const message = parsed(event.data);
      if (message) this.onMessage(message);
    };
    socket.onclose = () => {
      if (this.socket !== socket) return; // let go on purpose
      this.socket = null;
      this.again();
    };
  }

  /** Try again, a little later every time; not all pages at once. */
  again() {
    this.onStatus("lost");
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.open(), this.wait * (0.75 + Math.random() / 2));
    this.wait = Math.min(this.wait * 1.6, LONGEST_WAIT);
  }

  /** Let go of the connection. */
  rest() {
    clearTimeout(this.timer);
    if (!this.socket) return;
    const socket = this.socket;
    this.socket = null;
    socket.close();
    this.onStatus("connecting");
  }

  /** A cable that was pulled tells nobody: ask, where nothing came for long. */
  async watch() {
    const socket = this.socket;
    if (!socket || document.hidden || performance.now() - this.heard < QUIET) return;
    this.heard = performance.now();
    try {
      await ask("GET", "/api/state", undefined, AbortSignal.timeout(PATIENCE));
    } catch {
      if (this.socket !== socket) return;
      this.rest();
      this.again();
    }
  }
}
