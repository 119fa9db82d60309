// All regions: where must I look?

import { html } from "../vendor/preact.js";
import { link, narrow, useGet, useTitle } from "../hooks.js";
import { Bar, Failure, Pauses, Pending, plural, Sign } from "../words.js";

export function Regions({ here }) {
  useTitle("");
  const { data, error } = useGet("/api/v1/regions");
  if (!data) return html`<h1>Regions</h1><${Pending} error=${error} what="the regions" />`;
  const wanted = (here.query.q ?? "").toLowerCase();
  const items = data.items
    .filter((one) => one.name.toLowerCase().includes(wanted))
    .sort((a, b) => urgency(b) - urgency(a) || a.name.localeCompare(b.name));
  const sum = (pick) => data.items.reduce((all, one) => all + pick(one), 0);
  return html`
    <div class="heading"><h1>Regions</h1>
      ${data.items.length > 8 && html`<input type="search" aria-label="Regions whose name has" placeholder="narrow by name"
        value=${here.query.q ?? ""} onInput=${(e) => narrow({ q: e.target.value })} />`}
    </div>
    <${Failure} error=${error} />
    <p class="sums">
      <b>${plural(data.items.length, "region")}</b> ·
      <b>${plural(sum((r) => r.resources.total), "thing")}</b> ·
      <span><${Sign} state="ready" /> ${sum((r) => r.resources.ready).toLocaleString("en")} Ready</span> ·
      <span><${Sign} state="failing" /> ${sum((r) => r.resources.notReady).toLocaleString("en")} not</span> ·
      <span><${Sign} state="unknown" /> ${sum((r) => r.resources.unknown).toLocaleString("en")} unknown</span> ·
      <span><${Sign} state="moving" /> ${plural(sum((r) => r.steps), "step")} to do, ${sum((r) => r.waits)} under way</span>
    </p>
    <ul class="cards">${items.map((one) => html`<${Card} key=${one.name} one=${one} now=${data.now} />`)}</ul>
    ${!data.items.length && html`<p>No documents yet. <code>fleetctl apply DIR</code> hands some over.</p>`}
  `;
}

function urgency(one) {
  const { total, notReady, unknown } = one.resources;
  return total ? (notReady + unknown) / total : 0;
}

function Card({ one, now }) {
  const { total, ready, notReady, unknown } = one.resources;
  const good = one.conditions[0]?.status === "True";
  const held = Object.entries(one.holds).filter(([reason]) => reason !== "DependencyNotReady");
  return html`<li><a class="card" href=${link("region", one.name)}>
    <h2><${Sign} state=${good ? "ready" : one.steps + one.waits ? "moving" : "failing"} label=${good ? "Ready" : "not Ready"} /> ${one.name}</h2>
    <${Bar} states=${{ ready, failing: notReady, unknown }} total=${total} />
    <p>${ready.toLocaleString("en")} of ${total.toLocaleString("en")} Ready${one.steps + one.waits ? ` · ${plural(one.steps + one.waits, "change")} under way` : ""}</p>
    <${Pauses} items=${one.pauses} now=${now} />
    ${held.map(([reason, count]) => html`<p class="held">${count} held: ${words(reason)}</p>`)}
    ${!good && html`<p class="dim">${one.conditions[0]?.message}</p>`}
  </a></li>`;
}

/** `NeedsApproval` reads as "needs approval". */
export function words(reason) {
  return reason.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();
}
