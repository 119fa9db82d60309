// What is to be done, in order, with what it disrupts; what is held, and why; what may be approved.

import { html, useState } from "../vendor/preact.js";
import { link, useGet, useTitle } from "../hooks.js";
import { query } from "../api.js";
import { useSend } from "../actions.js";
import { words } from "./regions.js";
import { Failure, Pauses, Pending, plural, Sign, Thing, Until, Words } from "../words.js";

const SHOWN = 300;

export function PlanView({ here }) {
  useTitle("Plan");
  const region = here.query.region;
  return region ? html`<${OfRegion} region=${region} />` : html`<${All} />`;
}

function All() {
  const { data, error } = useGet("/api/v1/regions");
  if (!data) return html`<h1>Plan</h1><${Pending} error=${error} what="the plans" />`;
  const busy = (one) => one.steps + one.waits + Object.values(one.holds).reduce((a, b) => a + b, 0);
  const items = [...data.items].sort((a, b) => busy(b) - busy(a) || a.name.localeCompare(b.name));
  return html`<h1>Plan</h1><${Failure} error=${error} />
    <table><thead><tr><th>Region</th><th class="number">Steps</th><th class="number">Under way</th><th>Held</th></tr></thead>
    <tbody>${items.map((one) => html`<tr><td><a href=${link("plan", { region: one.name })}>${one.name}</a></td>
      <td class="number">${one.steps}</td><td class="number">${one.waits}</td>
      <td>${one.pauses.map((rest) => html`<span class="badge soon">paused: ${rest.scope}</span> `)}${Object.entries(one.holds).map(([reason, count]) => html`<span class=${`badge ${reason === "NeedsApproval" ? "soon" : ""}`}>${count} ${words(reason)}</span> `)}</td></tr>`)}</tbody></table>`;
}

function OfRegion({ region }) {
  const { data, error, again } = useGet(`/api/v1/plan${query({ region, brief: true })}`);
  if (!data) return html`<h1>Plan of ${region}</h1><${Pending} error=${error} what="the plan" />`;
  const plan = data.plans[0] ?? { steps: [], holds: [], waits: [] };
  const groups = new Map();
  for (const one of plan.holds) groups.set(one.reason, [...(groups.get(one.reason) ?? []), one]);
  const order = [...groups.keys()].sort((a, b) => weight(a) - weight(b) || a.localeCompare(b));
  return html`
    <p class="trail"><a href="#/plan">Plans</a> › <a href=${link("region", region)}>${region}</a></p>
    <div class="heading"><h1>Plan of ${region}</h1>${plan.id && html`<code class="dim">${plan.id}</code>`}</div>
    <${Failure} error=${error} />
    <${Pauses} items=${plan.pauses} />
    ${!plan.steps.length && !plan.holds.length && !plan.waits.length && html`<p class="calm"><${Sign} state="ready" /> There is nothing to do.</p>`}
    ${plan.steps.length > 0 && html`<section><h2>${plural(plan.steps.length, "step")}, in this order</h2>
      <ol class="steps">${plan.steps.slice(0, SHOWN).map((one) => html`<li key=${one.id}><${Step} one=${one} /></li>`)}</ol></section>`}
    ${plan.waits.length > 0 && html`<section><h2>${plan.waits.length} under way</h2>
      <ul class="steps">${plan.waits.slice(0, SHOWN).map((one) => html`<li key=${one.ref} class="wait"><${Sign} state="moving" /> <${Thing} name=${one.ref} /> <${Words} text=${one.message || one.reason} /></li>`)}</ul></section>`}
    ${order.map((reason) => html`<section key=${reason}><h2>${groups.get(reason).length} held: ${words(reason)}</h2>
      ${byCause(groups.get(reason)).map(([cause, holds]) => html`<${Held} key=${cause} cause=${cause} holds=${holds} again=${again} />`)}</section>`)}
  `;
}

/** What waits for the same thing is one line until somebody asks for more. */
function byCause(holds) {
  const causes = new Map();
  for (const one of holds) {
    const cause = one.approval ? "" : one.blocker ?? "";
    causes.set(cause, [...(causes.get(cause) ?? []), one]);
  }
  return [...causes].sort((a, b) => b[1].length - a[1].length);
}

function Held({ cause, holds, again }) {
  const list = html`<ul class="steps">${holds.slice(0, SHOWN).map((one) => html`<li key=${one.ref}><${Hold} one=${one} again=${again} /></li>`)}</ul>
    ${holds.length > SHOWN && html`<p class="dim">and ${holds.length - SHOWN} more</p>`}`;
  if (!cause) return list;
  return html`<p class="cause">${plural(holds.length, "thing")} ${holds.length === 1 ? "waits" : "wait"} for <${Thing} name=${cause} /></p>
    <details class="group"><summary>which</summary>${list}</details>`;
}

/** What a person can do something about comes first. */
function weight(reason) {
  return reason === "NeedsApproval" ? 0 : reason === "DependencyNotReady" ? 2 : 1;
}

export function Step({ one }) {
  const hurts = one.disrupts.length + one.destroys.length;
  return html`<div class="step"><${Sign} state="moving" /> <b>${one.verb}</b> <${Thing} name=${one.ref} /> <span class="dim">${one.why}</span>
    ${hurts > 0 && html`<p class="disrupts">${one.destroys.length > 0 && html`<b class="bad">destroys</b> ${names(one.destroys)} `}
      ${one.disrupts.length > 0 && html`<b>disrupts</b> ${names(one.disrupts)}`}</p>`}</div>`;
}

function names(refs) {
  return html`${refs.slice(0, 8).map((ref, n) => html`${n ? ", " : ""}<${Thing} name=${ref} />`)}${refs.length > 8 ? ` and ${refs.length - 8} more` : ""}`;
}

export function Hold({ one, now, again }) {
  return html`<div class="hold"><${Sign} state="waiting" label="held" /> <${Thing} name=${one.ref} /> <${Words} text=${one.message} />
    ${one.until && now && html` <span class="dim">until <${Until} at=${one.until} now=${now} /></span>`}
    ${one.steps.map((step) => html`<${Step} one=${step} />`)}
    ${one.approval && html`<${Decide} id=${one.approval} again=${again} />`}</div>`;
}

function Decide({ id, again }) {
  const [said, setSaid] = useState(null);
  const [{ busy, error }, send] = useSend(`/api/v1/approvals/${encodeURIComponent(id)}`, (answer) => {
    setSaid(answer.decision);
    again?.();
  });
  if (said) return html`<p class="dim" role="status">${said === "approve" ? "Approved" : "Rejected"}.</p>`;
  return html`<p class="answers"><button class="chief" disabled=${busy} onClick=${() => send({ decision: "approve" })}>Approve</button>
    <button disabled=${busy} onClick=${() => send({ decision: "reject" })}>Reject</button> <code class="dim">${id}</code><${Failure} error=${error} /></p>`;
}
