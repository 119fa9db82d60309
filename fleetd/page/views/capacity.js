// Free and used servers: can another cluster be had?

import { html } from "../vendor/preact.js";
import { link, useGet, useTitle } from "../hooks.js";
import { query } from "../api.js";
import { Failure, Pending, Thing } from "../words.js";

export function Capacity({ here }) {
  useTitle("Capacity");
  const region = here.query.region;
  const { data, error } = useGet(`/api/v1/capacity${query({ region })}`);
  if (!data) return html`<h1>Capacity</h1><${Pending} error=${error} what="the servers" />`;
  return html`
    <div class="heading"><h1>Capacity${region ? ` in ${region}` : ""}</h1>
      ${region && html`<a href=${link("capacity")}>all regions</a>`}</div>
    <${Failure} error=${error} />
    <table><thead><tr><th>Region</th><th>Pool</th><th>Class</th><th>Zone</th><th class="number">Servers</th><th class="number">Used</th><th class="number">Free</th><th class="number">Out</th><th>Share in use</th></tr></thead>
    <tbody>${data.items.map((one) => html`<tr>
      <td><a href=${link("region", one.region)}>${one.region}</a></td><td><${Thing} name=${`serverpool/${one.pool}`} /></td>
      <td>${one.class}</td><td>${one.zone ?? "–"}</td><td class="number">${one.total}</td><td class="number">${one.used}</td>
      <td class="number">${one.free}</td><td class="number">${one.unavailable ? html`<b class="bad">${one.unavailable}</b>` : 0}</td>
      <td><meter min="0" max=${one.total} value=${one.used} aria-label=${`${one.used} of ${one.total} used`}></meter></td></tr>`)}</tbody></table>
    ${data.clusters.length > 0 && html`<h2>Who has them</h2><table><thead><tr><th>Region</th><th>Cluster</th><th class="number">Servers</th></tr></thead>
    <tbody>${data.clusters.map((one) => html`<tr><td>${one.region}</td>
      <td>${one.cluster ? html`<${Thing} name=${`cluster/${one.cluster}`} />` : html`<span class="dim">not known</span>`}</td>
      <td class="number">${one.used}</td></tr>`)}</tbody></table>`}
  `;
}
