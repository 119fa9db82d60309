// One region: its picture, and beside it what one box is doing.

import { html } from "../vendor/preact.js";
import { link, narrow, useGet, useTitle } from "../hooks.js";
import { query } from "../api.js";
import { Picture } from "../picture.js";
import { Actions } from "../actions.js";
import { Age, Failure, MEANING, ORDER, Pauses, Pending, plural, Sign, Thing, toThing, Words } from "../words.js";

const PARTS_SHOWN = 200;

export function Region({ here }) {
  const name = here.parts[1] ?? "";
  useTitle(name);
  const { data, error } = useGet(`/api/v1/picture/${encodeURIComponent(name)}`);
  const rests = useGet(`/api/v1/regions/${encodeURIComponent(name)}`).data?.pauses;
  if (!data) return html`<h1>${name}</h1><${Pending} error=${error} what="the region" />`;
  const chosen = data.boxes.find((one) => one.id === here.query.box) ?? null;
  const own = data.boxes.find((one) => one.kind === "region");
  const states = {};
  for (const box of data.boxes) {
    for (const [state, count] of Object.entries(box.states)) states[state] = (states[state] ?? 0) + count;
  }
  return html`
    <div class="heading"><h1>${own && html`<${Sign} state=${own.state} />`} ${name}</h1>
      <nav class="tabs" aria-label="Of this region">
        <a href=${link("plan", { region: name })}>Plan</a>
        <a href=${link("incidents", { region: name })}>Incidents</a>
        <a href=${link("credentials", { region: name })}>Credentials</a>
        <a href=${link("capacity", { region: name })}>Capacity</a>
        <a href=${link("things", { region: name })}>Things</a>
      </nav></div>
    <${Failure} error=${error} />
    <${Pauses} items=${rests} now=${data.now} />
    <p class="sums">${ORDER.filter((state) => states[state]).map((state) => html`
      <span title=${MEANING[state]}><${Sign} state=${state} /> ${states[state].toLocaleString("en")} ${state}</span>`)}</p>
    <div class=${chosen ? "beside" : ""}>
      <${Picture} data=${data} chosen=${chosen?.id ?? null}
        choose=${(id) => narrow({ box: id === chosen?.id ? undefined : id })} />
      ${chosen && html`<${Panel} key=${chosen.id} box=${chosen} now=${data.now} />`}
    </div>`;
}

function Panel({ box, now }) {
  const { data, error } = useGet(`/api/v1/resources${query({ owner: box.id, limit: PARTS_SHOWN })}`);
  const rank = (one) => ORDER.indexOf(one.state);
  const items = data ? [...data.items].sort((a, b) => rank(a) - rank(b)) : [];
  return html`<aside class="panel" aria-label=${box.id}>
    <h2><${Thing} name=${box.id} /> <button class="plain" aria-label="Close" onClick=${() => narrow({ box: undefined })}>×</button></h2>
    <p>${box.ready.status === "True" ? "Ready" : html`<b>${box.ready.reason}</b> <${Words} text=${box.ready.message} />`}
      <span class="dim"> since <${Age} at=${box.ready.since} now=${now} /></span></p>
    ${box.plan && html`<p class="said"><${Words} text=${box.plan.message} /></p>`}
    <${Actions} name=${box.id} />
    <h3>${plural(box.total, "part")}</h3>
    ${data ? html`<ul class="parts">${items.map((one) => html`<li key=${`${one.kind}/${one.name}`}>
        <${Sign} state=${one.state} /> <a href=${toThing(`${one.kind}/${one.name}`)}>${one.kind}${one.name === box.name ? "" : `/${one.name}`}</a>
        ${one.ready.status !== "True" && html`<span class="dim"> ${one.ready.reason}</span>`}</li>`)}</ul>
        ${data.continue && html`<p><a href=${link("things", { owner: box.id })}>all of them</a></p>`}`
      : html`<${Pending} error=${error} what="its parts" />`}
  </aside>`;
}
