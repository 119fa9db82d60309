// The ledger of credentials and the register of endings. Never a value.

import { html } from "../vendor/preact.js";
import { link, useGet, useTitle } from "../hooks.js";
import { query } from "../api.js";
import { Failure, Pending, plural, span, Until, Words } from "../words.js";

const BAD = new Set(["Expired", "Overdue"]);
const SOON = new Set(["Expiring", "Spreading", "OldKept"]);

export function Credentials({ here }) {
  useTitle("Credentials");
  const { region, by } = here.query;
  const { data, error } = useGet(`/api/v1/credentials${query({ region })}`);
  if (!data) return html`<h1>Credentials</h1><${Pending} error=${error} what="the ledger" />`;
  const endings = by === "end";
  const items = endings
    ? data.items.filter((one) => one.expires).sort((a, b) => a.expires.localeCompare(b.expires))
    : data.items;
  return html`
    <div class="heading"><h1>Credentials${region ? ` in ${region}` : ""}</h1>
      <span class="tabs" role="group" aria-label="Order">
        <a href=${link("credentials", { region })} aria-current=${endings ? undefined : "true"}>Ledger</a>
        <a href=${link("credentials", { region, by: "end" })} aria-current=${endings ? "true" : undefined}>What ends when</a>
      </span></div>
    <${Failure} error=${error} />
    <p class="dim">${plural(items.length, "entry", "entries")}. Names and versions only; a value is never shown, kept or logged.</p>
    <table><thead><tr><th>State</th><th>Credential</th><th>Made by</th><th>Age</th><th>Next rotation</th><th>Ends</th><th>Used by</th></tr></thead>
    <tbody>${items.map((one) => html`<tr>
      <td><span class=${`badge ${BAD.has(one.state) ? "bad" : SOON.has(one.state) ? "soon" : one.state === "Good" ? "good" : ""}`}>${one.state}</span></td>
      <td><b>${one.name}</b> <span class="dim">${one.region}</span></td>
      <td><${Words} text=${one.madeBy} /></td>
      <td>${one.ageSeconds === null ? "–" : span(one.ageSeconds)}</td>
      <td><${Until} at=${one.nextRotation} now=${data.now} /></td>
      <td><${Until} at=${one.expires} now=${data.now} /></td>
      <td>${users(one)}</td></tr>`)}</tbody></table>
  `;
}

function users(one) {
  if (!one.users) return html`<span class="dim">–</span>`;
  const old = one.stillOld.length;
  return html`<details><summary>${plural(one.users, "user")}${old ? html`, <b class="bad">${old} with the old one</b>` : ""}</summary>
    <ul class="names">${one.usedBy.map((user) => html`<li><${Words} text=${user.who} />
      <span class="dim"> ${user.version ?? "version not seen"}</span></li>`)}</ul></details>`;
}
