// Talks to the daemon. Knows nothing of what is shown.
//
// Answers are kept with their ETag, so asking again for what did not change costs neither side
// anything. What the daemon refuses becomes a Problem with its sentence.

export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || `the daemon answered ${status}`);
    this.status = status;
    this.code = body.code || "";
    this.more = body;
  }
}

export class Unreachable extends Error {
  constructor() {
    super("The daemon does not answer. Is it running?");
  }
}

/** Called with what the daemon says when it does not know who asks. */
const strangers = new Set();
export function onStranger(callback) {
  strangers.add(callback);
  return () => strangers.delete(callback);
}

/** What a browser's session sends along with a write, so that no other page can write for it. */
let mark = null;

/** Who the daemon says we are. */
export async function whoami() {
  const told = await get("/api/v1/whoami");
  mark = told.csrf;
  return told;
}

const KEPT_MAX = 60;
const kept = new Map();

async function ask(path, options) {
  try {
    return await fetch(path, { credentials: "same-origin", ...options });
  } catch (cause) {
    if (cause.name === "AbortError") throw cause;
    throw new Unreachable();
  }
}

async function problem(response) {
  let body = {};
  try {
    body = await response.json();
  } catch { /* not ours; the status must do */ }
  if (response.status === 401) for (const one of strangers) one(body);
  return new Problem(response.status, body);
}

/** What is at a path, as JSON. The same object again if nothing changed. */
export async function get(path, signal) {
  const before = kept.get(path);
  const headers = before ? { "If-None-Match": before.mark } : {};
  const response = await ask(path, { headers, signal });
  if (response.status === 304 && before) return before.data;
  if (!response.ok) throw await problem(response);
  const data = await response.json();
  const mark = response.headers.get("ETag");
  kept.delete(path);
  if (mark) kept.set(path, { mark, data });
  if (kept.size > KEPT_MAX) kept.delete(kept.keys().next().value);
  return data;
}

/** Tells the daemon something. */
export async function post(path, body, again = true) {
  const headers = { "Content-Type": "application/json" };
  if (mark) headers["X-CSRF-Token"] = mark;
  const response = await ask(path, { method: "POST", headers, body: JSON.stringify(body) });
  if (response.ok) return response.json();
  const refused = await problem(response);
  if (refused.code !== "csrf" || !again) throw refused;
  await whoami(); // somebody logged in anew, in another tab
  return post(path, body, false);
}

export function query(parts) {
  const given = Object.entries(parts).filter(([, value]) => value !== undefined && value !== "");
  return given.length ? `?${new URLSearchParams(given)}` : "";
}
