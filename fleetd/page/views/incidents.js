// Open incidents: one cause each, and what it takes along.

import { html } from "../vendor/preact.js";
import { link, useGet, useTitle } from "../hooks.js";
import { query } from "../api.js";
import { Age, Failure, Pending, plural, Sign, Thing, Words } from "../words.js";

export function Incidents({ here }) {
  useTitle("Incidents");
  const region = here.query.region;
  const { data, error } = useGet(`/api/v1/incidents${query({ region })}`);
  if (!data) return html`<h1>Incidents</h1><${Pending} error=${error} what="incidents" />`;
  return html`
    <div class="heading"><h1>Incidents${region ? ` in ${region}` : ""}</h1>
      ${region && html`<a href=${link("incidents")}>all regions</a>`}</div>
    <${Failure} error=${error} />
    ${data.left > 0 && html`<p class="failure">${plural(data.left, "more thing")} in trouble, too many to tell one by one.</p>`}
    ${data.items.length
      ? html`<ol class="incidents">${data.items.map((one) => html`<${Incident} key=${one.id} one=${one} now=${data.now} />`)}</ol>`
      : html`<p class="calm" role="status"><${Sign} state="ready" /> Nothing is wrong that has a cause of its own. What waits for something is under <a href="#/plan">Plan</a>.</p>`}
  `;
}

function Incident({ one, now }) {
  const { cause, affected: shown, affectedTotal: total } = one;
  return html`<li class=${`incident ${one.severity}`} id=${one.id}>
    <h2><${Sign} state="failing" label=${one.severity} /> <${Words} text=${cause.ref} /> <span class="reason">${cause.reason}</span>
      <span class="dim">since <${Age} at=${one.since} now=${now} /> · <a href=${link("region", one.region)}>${one.region}</a> · ${one.severity}</span></h2>
    <p><${Words} text=${cause.message} /></p>
    ${one.advice && html`<p class="advice">${one.advice}</p>`}
    ${total > 0 && html`<details><summary>affects ${plural(total, "other thing")}${one.affectedMore ? " or more" : ""}</summary>
      <ul class="names">${shown.map((ref) => html`<li><${Thing} name=${ref} /></li>`)}
      ${total > shown.length && html`<li class="dim">and ${total - shown.length} more</li>`}</ul></details>`}
  </li>`;
}
