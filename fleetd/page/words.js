// How a state, an age and a name look. A state is never told by colour alone.

import { createContext, html, useContext } from "./vendor/preact.js";
import { link } from "./hooks.js";

/** The kinds there are: a word with a slash is a name only if it begins with one. */
export const Kinds = createContext(new Set());

export const SIGNS = {
  ready: "●", failing: "✗", unknown: "?", moving: "◐", waiting: "◌", absent: "·",
};
export const ORDER = ["failing", "unknown", "moving", "waiting", "absent", "ready"];
export const MEANING = {
  ready: "as declared",
  failing: "not as declared, and nobody else is the cause",
  unknown: "could not be looked at",
  moving: "being worked on",
  waiting: "waits for something else",
  absent: "not there yet",
};

export function Sign({ state, label }) {
  return html`<span class=${`sign ${state}`} title=${MEANING[state]} role="img"
    aria-label=${label ?? state}>${SIGNS[state]}</span>`;
}

/** `5s`, `12m`, `3h`, `2d`: one unit, because a glance is all it gets. */
export function age(then, now) {
  if (!then || !now) return "–";
  return span((Date.parse(now) - Date.parse(then)) / 1000);
}

export function span(seconds) {
  const passed = Math.max(0, seconds);
  for (const [size, unit, least] of [[86400, "d", 1], [3600, "h", 2], [60, "m", 2]]) {
    if (passed >= size * least) return `${Math.floor(passed / size)}${unit}`;
  }
  return `${Math.floor(passed)}s`;
}

export function Age({ at, now }) {
  return html`<time class="age" datetime=${at ?? ""} title=${at ?? "never"}>${age(at, now)}</time>`;
}

/** `in 5h`, or `3m ago`. */
export function Until({ at, now }) {
  if (!at) return html`<span class="dim">–</span>`;
  const left = (Date.parse(at) - Date.parse(now)) / 1000;
  return html`<time datetime=${at} title=${at}>${left >= 0 ? `in ${span(left)}` : `${span(-left)} ago`}</time>`;
}

export function toThing(ref) {
  const cut = ref.indexOf("/");
  return link("thing", ref.slice(0, cut), ref.slice(cut + 1));
}

export function Thing({ name }) {
  return html`<a class="thing" href=${toThing(name)}>${name}</a>`;
}

const NAMES = /(?<=^|[\s(])([a-z][a-z0-9-]*)\/([a-z0-9](?:[\w.-]*\w)?)/g;

/** A sentence in which every thing that is named leads to it. */
export function Words({ text }) {
  const kinds = useContext(Kinds);
  const parts = [];
  let from = 0;
  for (const found of (text ?? "").matchAll(NAMES)) {
    if (!kinds.has(found[1])) continue;
    parts.push(text.slice(from, found.index), html`<${Thing} name=${found[0]} />`);
    from = found.index + found[0].length;
  }
  return html`<span>${parts}${(text ?? "").slice(from)}</span>`;
}

export function plural(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

/** A bar of states, in the order of need. The words beside it say the same. */
export function Bar({ states, total }) {
  const shown = ORDER.filter((name) => states[name]);
  const words = shown.map((name) => `${states[name]} ${name}`).join(", ") || "nothing";
  return html`<span class="bar" role="img" aria-label=${words} title=${words}>
    ${shown.map((name) => html`<i class=${name} style=${{ flexGrow: states[name] / Math.max(total, 1) }} />`)}
  </span>`;
}

/** What people told to rest, with who, why, and since when. */
export function Pauses({ items, now }) {
  return html`${(items ?? []).map((one) => html`<p class="held paused" key=${one.scope}><b>${one.scope === "all" ? "everything" : one.scope}</b> is paused by ${one.who}${now && html` <${Age} at=${one.since} now=${now} /> ago`}: ${one.reason}</p>`)}`;
}

export function Failure({ error }) {
  if (!error) return null;
  return html`<p class="failure" role="alert">${error.message}</p>`;
}

/** Until there is something to show. */
export function Pending({ error, what }) {
  return error
    ? html`<${Failure} error=${error} />`
    : html`<p class="pending" role="status">Asking for ${what} …</p>`;
}
