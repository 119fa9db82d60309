// Everything about one thing, and first of all why it is as it is.

import { html } from "../vendor/preact.js";
import { link, useGet, useTitle } from "../hooks.js";
import { query } from "../api.js";
import { Actions } from "../actions.js";
import { Hold, Step } from "./plan.js";
import { Age, Failure, ORDER, Pauses, Pending, plural, Sign, Thing, Words } from "../words.js";

const GROUPS = new Set(["cluster", "serverpool", "cloud", "region"]);

export function ThingView({ here }) {
  const [, kind = "", ...rest] = here.parts;
  const name = rest.join("/");
  useTitle(`${kind}/${name}`);
  const { data, error } = useGet(`/api/v1/resources/${encodeURIComponent(kind)}/${encodeURIComponent(name)}`);
  if (!data) return html`<h1>${kind}/${name}</h1><${Pending} error=${error} what="it" />`;
  const ref = `${data.kind}/${data.name}`;
  return html`
    <p class="trail"><a href="#/">Regions</a> › <a href=${link("region", data.region)}>${data.region}</a>
      ${data.owner && data.owner !== ref && html` › <${Thing} name=${data.owner} />`}</p>
    <div class="heading"><h1><${Sign} state=${data.state} /> ${ref}</h1>
      ${data.orphan && html`<span class="badge soon">orphan</span>`} ${data.retired && html`<span class="badge soon">retired</span>`}
      <${Actions} name=${ref} /></div>
    <${Failure} error=${error} />
    <${Pauses} items=${data.pause && !data.why.paragraph.includes("paused by") ? [data.pause] : []} now=${data.now} />
    <section class="why"><h2 class="hidden">Why</h2><p><${Words} text=${told(data.why)} /></p>
      ${data.why.chain.length > 1 && html`<ol class="chain">${data.why.chain.map((one) => html`<li><${Thing} name=${one.ref} /></li>`)}</ol>`}
      ${data.why.advice && html`<p class="advice"><${Words} text=${data.why.advice} /></p>`}</section>
    <div class="columns">
      <section><h2>Conditions</h2><table class="conditions"><tbody>${data.conditions.map((one) => html`<tr>
        <th scope="row">${one.type}</th><td>${one.status}</td><td>${one.reason}</td><td><${Words} text=${one.message} /></td><td><${Age} at=${one.since} now=${data.now} /></td></tr>`)}</tbody></table></section>
      <section><h2>Plan</h2>
        ${data.steps.map((one) => html`<${Step} one=${one} />`)}
        ${data.holds.map((one) => html`<${Hold} one=${one} now=${data.now} />`)}
        ${data.waits.map((one) => html`<p class="wait"><${Sign} state="moving" /> ${one.reason}: ${one.message}</p>`)}
        ${!data.steps.length && !data.holds.length && !data.waits.length && html`<p class="dim">There is nothing to do.</p>`}
        ${data.attempt && html`<p class="dim">Last try: ${data.attempt.verb}, ${data.attempt.result} ${data.attempt.message ?? ""} <${Age} at=${data.attempt.at} now=${data.now} /> ago</p>`}</section>
    </div>
    ${GROUPS.has(data.kind) && html`<${Parts} of=${ref} />`}
    <div class="columns">
      <${Beside} title="Needs" relation="needs" data=${data} />
      <${Beside} title="Needed by" relation="neededBy" data=${data} />
    </div>
    <section><h2>Events <a class="more" href=${link("events", { for: ref })}>all</a></h2>
      <table class="events"><tbody>${[...data.events].reverse().map((one) => html`<tr><td><${Age} at=${one.at} now=${data.now} /></td><td>${one.reason}</td><td>${one.message}</td></tr>`)}</tbody></table></section>
    <section class="raw"><details><summary>Declared</summary><pre tabindex="0">${JSON.stringify(data.desired, null, 2)}</pre></details>
      <details><summary>Observed ${data.observed ? html`<${Age} at=${data.observed.at} now=${data.now} /> ago` : "never"}</summary><pre tabindex="0">${JSON.stringify(data.observed, null, 2)}</pre></details></section>
  `;
}

/** The paragraph without what to do, which stands below it. */
function told({ paragraph, advice }) {
  const at = advice ? paragraph.lastIndexOf(advice) : -1;
  return at > 0 ? paragraph.slice(0, at).trim() : paragraph;
}

function Beside({ title, relation, data }) {
  const items = data.neighbours.filter((one) => one.relation === relation);
  const total = data[relation].length;
  return html`<section><h2>${title} <span class="dim">${total}</span></h2><ul class="parts">
    ${items.map((one) => html`<li><${Sign} state=${one.state} /> <${Thing} name=${one.ref} />
      ${one.why && html`<span class="dim"> ${one.why}</span>`}</li>`)}
    ${total > items.length && html`<li class="dim">and ${total - items.length} more</li>`}</ul></section>`;
}

/** Of a cluster its pools and servers, of a pool its servers, of a cloud its services. */
function Parts({ of }) {
  const { data, error } = useGet(`/api/v1/resources${query({ owner: of, limit: 500 })}`);
  if (!data) return html`<${Pending} error=${error} what="its parts" />`;
  const rank = (one) => ORDER.indexOf(one.state);
  const items = data.items.filter((one) => `${one.kind}/${one.name}` !== of)
    .sort((a, b) => rank(a) - rank(b) || a.kind.localeCompare(b.kind) || a.name.localeCompare(b.name));
  if (!items.length) return null;
  const bad = items.filter((one) => one.ready.status !== "True").length;
  return html`<section><h2>${plural(items.length, "part")}${data.continue ? "+" : ""} ${bad > 0 && html`<span class="dim">${bad} not Ready</span>`}
    <a class="more" href=${link("things", { owner: of })}>as a list</a></h2>
    <ul class="tiles">${items.map((one) => html`<li><a class=${`tile ${one.state}`} href=${`#/thing/${encodeURIComponent(one.kind)}/${encodeURIComponent(one.name)}`}
      title=${`${one.kind}/${one.name}: ${one.ready.reason} ${one.ready.message}`}><${Sign} state=${one.state} /> ${one.kind === "server" ? one.name : one.kind}</a></li>`)}</ul></section>`;
}
