// What happened, newest first, and live.

import { html, useEffect, useState } from "../vendor/preact.js";
import { narrow, useTitle } from "../hooks.js";
import { get, query } from "../api.js";
import { listen } from "../live.js";
import { Age, Failure, Thing, Words } from "../words.js";

const KEPT = 500;

export function Events({ here }) {
  useTitle("Events");
  const [items, setItems] = useState([]);
  const [error, setError] = useState(null);
  const [now, setNow] = useState(null);
  const [still, setStill] = useState(false);
  const about = here.query.for;
  useEffect(() => {
    let gone = false;
    const merge = (more) => setItems((old) => {
      const known = new Set(old.map((one) => one.seq));
      const fresh = more.filter((one) => !known.has(one.seq));
      return fresh.length ? [...fresh, ...old].sort((a, b) => b.seq - a.seq).slice(0, KEPT) : old;
    });
    async function load() {
      try {
        const found = await get(`/api/v1/events${query({ newest: true, limit: 200, for: about })}`);
        if (gone) return;
        merge(found.items);
        setNow(found.now);
        setError(null);
      } catch (failed) { setError(failed); }
    }
    setItems([]);
    load();
    if (still) return () => { gone = true; };
    const stop = listen((event) => {
      if (event === null) load();
      else if (event.seq && (!about || event.ref === about)) { merge([event]); setNow(event.at); }
    });
    return () => { gone = true; stop(); };
  }, [about, still]);
  const wanted = (here.query.q ?? "").toLowerCase();
  const shown = items.filter((one) => `${one.ref} ${one.reason} ${one.message}`.toLowerCase().includes(wanted));
  return html`
    <div class="heading"><h1>Events${about ? html` of <${Thing} name=${about} />` : ""}</h1>
      <input type="search" aria-label="Events that contain" placeholder="narrow" value=${here.query.q ?? ""} onInput=${(e) => narrow({ q: e.target.value })} />
      <button onClick=${() => setStill(!still)} aria-pressed=${still}>${still ? "Go on" : "Hold still"}</button>
    </div>
    <${Failure} error=${error} />
    <table class="events"><thead><tr><th>When</th><th>What</th><th>About</th><th>Words</th></tr></thead>
      <tbody>${shown.map((one) => html`<tr key=${one.seq}>
        <td><${Age} at=${one.at} now=${now} /></td>
        <td class=${/Failed|Lost|NotReady/.test(one.reason) ? "bad" : ""}>${one.reason}</td>
        <td><${Thing} name=${one.ref} /></td><td><${Words} text=${one.message} /></td></tr>`)}</tbody></table>
    ${!shown.length && !error && html`<p class="dim">Nothing${wanted ? " that contains this" : ""} yet.</p>`}
  `;
}
