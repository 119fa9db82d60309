// Every thing as a long list, narrowed by kind, state and name. Ten thousand rows do not freeze it.

import { html, useEffect, useState } from "../vendor/preact.js";
import { narrow, useGet, useTitle } from "../hooks.js";
import { get, query } from "../api.js";
import { listen } from "../live.js";
import { List } from "../list.js";
import { Age, Failure, plural, Sign, Thing, toThing } from "../words.js";

const PAGE = 1000;
const MOST = 200000;

/** All pages of a list, one after the other; begun anew when the question changes. */
function usePages(path) {
  const [found, setFound] = useState({ items: [], done: false, error: null, now: null });
  useEffect(() => {
    const abort = new AbortController();
    let due = null;
    async function load() {
      let items = [];
      let next = "";
      try {
        do {
          const page = await get(`${path}${path.includes("?") ? "&" : "?"}limit=${PAGE}${next ? `&continue=${next}` : ""}`, abort.signal);
          items = items.concat(page.items);
          next = page.continue;
          const shown = items;
          setFound((old) => (shown.length >= old.items.length || !next
            ? { items: shown, done: !next, error: null, now: page.now } : old));
        } while (next && items.length < MOST);
      } catch (error) {
        if (abort.signal.aborted) return;
        setFound((old) => ({ ...old, error }));
      }
      due = null;
    }
    const soon = () => { due ||= setTimeout(load, 5000); };
    setFound({ items: [], done: false, error: null, now: null });
    load();
    const stop = listen((event) => { if (event && !document.hidden) soon(); });
    return () => { abort.abort(); clearTimeout(due); stop(); };
  }, [path]);
  return found;
}

export function Things({ here }) {
  const { kind, ready, q, region, owner, reason } = here.query;
  useTitle(kind ? `${kind}s` : "Things");
  const kinds = useGet("/api/v1/kinds");
  const path = `/api/v1/resources${query({ kind, ready, q, region, owner, reason })}`;
  const { items, done, error, now } = usePages(path);
  const columns = [
    { name: html`<span class="hidden">Sign</span>`, width: "28px", cell: (one) => html`<${Sign} state=${one.state} />` },
    { name: "Kind", width: "minmax(90px, 1fr)", cell: (one) => one.kind },
    { name: "Name", width: "minmax(140px, 2fr)", cell: (one) => html`<a href=${toThing(`${one.kind}/${one.name}`)} tabindex="-1">${one.name}</a>` },
    { name: "Region", width: "minmax(70px, 1fr)", cell: (one) => one.region },
    { name: "State", width: "minmax(90px, 1fr)", cell: (one) => (one.ready.status === "True" ? "Ready" : one.ready.reason) },
    { name: "Since", width: "60px", cell: (one) => html`<${Age} at=${one.ready.since} now=${now} />` },
    { name: "Words", width: "minmax(100px, 4fr)", cell: (one) => html`<span class="dim">${one.ready.message}</span>` },
  ];
  return html`<div class="filling">
    <div class="heading"><h1>Things</h1>
      <label>Kind <select value=${kind ?? ""} onChange=${(e) => narrow({ kind: e.target.value })}>
        <option value="">all</option>${(kinds.data?.items ?? []).map((one) => html`<option value=${one.kind} selected=${one.kind === kind}>${one.kind} (${one.resources})</option>`)}</select></label>
      <label>Ready <select value=${ready ?? ""} onChange=${(e) => narrow({ ready: e.target.value })}>
        ${["", "true", "false", "unknown"].map((one) => html`<option value=${one} selected=${one === (ready ?? "")}>${one || "any"}</option>`)}</select></label>
      <input type="search" aria-label="Things whose name has" placeholder="name has" value=${q ?? ""} onInput=${(e) => narrow({ q: e.target.value })} />
      ${region && html`<button onClick=${() => narrow({ region: undefined })}>in ${region} ×</button>`}
      ${owner && html`<span>parts of <${Thing} name=${owner} /> <button class="plain" aria-label="of everything" onClick=${() => narrow({ owner: undefined })}>×</button></span>`}
      <span class="dim" role="status">${plural(items.length, "thing")}${done ? "" : " so far"}</span></div>
    <${Failure} error=${error} />
    <${List} items=${items} columns=${columns} label="Things" to=${(one) => toThing(`${one.kind}/${one.name}`)} />
  </div>`;
}
