// What a person may tell the daemon about one thing: leave it alone, go on, let it go.

import { html, useState } from "./vendor/preact.js";
import { post } from "./api.js";
import { Dialog } from "./dialog.js";
import { Failure, Thing } from "./words.js";

export function Actions({ name }) {
  const [asked, setAsked] = useState(null);
  return html`<p class="actions">
    <button onClick=${() => setAsked("pause")}>Pause</button>
    <button onClick=${() => setAsked("resume")}>Resume</button>
    <button class="grave" onClick=${() => setAsked("retire")}>Retire …</button>
    ${asked === "pause" && html`<${Pause} name=${name} close=${() => setAsked(null)} />`}
    ${asked === "resume" && html`<${Sure} title=${`Resume ${name}`} words="fleetd works on it again." path="/api/v1/resume" body=${{ scope: name }} close=${() => setAsked(null)} />`}
    ${asked === "retire" && html`<${Retire} name=${name} close=${() => setAsked(null)} />`}
  </p>`;
}

/** Does it, says what came of it. */
export function useSend(path, done) {
  const [state, setState] = useState({ busy: false, error: null });
  async function send(body) {
    setState({ busy: true, error: null });
    try {
      const answer = await post(path, body);
      setState({ busy: false, error: null });
      done(answer);
    } catch (error) { setState({ busy: false, error }); }
  }
  return [state, send];
}

export function Sure({ title, words, path, body, close, verb = "Yes" }) {
  const [{ busy, error }, send] = useSend(path, close);
  return html`<${Dialog} title=${title} close=${close}>
    <p>${words}</p><${Failure} error=${error} />
    <p class="answers"><button onClick=${close}>Cancel</button> <button class="chief" disabled=${busy} onClick=${() => send(body)}>${verb}</button></p>
  <//>`;
}

function Pause({ name, close }) {
  const [reason, setReason] = useState("");
  const [{ busy, error }, send] = useSend("/api/v1/pause", close);
  return html`<${Dialog} title=${`Pause ${name}`} close=${close}>
    <form onSubmit=${(e) => { e.preventDefault(); send({ scope: name, reason }); }}>
      <p>fleetd goes on looking and changes nothing here until somebody resumes it.</p>
      <label>Why? <input value=${reason} required maxlength="300" onInput=${(e) => setReason(e.target.value)} /></label>
      <${Failure} error=${error} />
      <p class="answers"><button type="button" onClick=${close}>Cancel</button> <button class="chief" disabled=${busy || !reason.trim()}>Pause</button></p>
    </form><//>`;
}

/** First shows what would go; only then can it be said. */
function Retire({ name, close }) {
  const cut = name.indexOf("/");
  const body = { kind: name.slice(0, cut), name: name.slice(cut + 1) };
  const [going, setGoing] = useState(null);
  const [typed, setTyped] = useState("");
  const [looking, look] = useSend("/api/v1/retire", setGoing);
  const [doing, send] = useSend("/api/v1/retire", close);
  return html`<${Dialog} title=${`Retire ${name}`} close=${close}>
    ${going === null
      ? html`<p>It is marked for removal; its plan is made and shown before anything goes.</p><${Failure} error=${looking.error} />
        <p class="answers"><button onClick=${close}>Cancel</button> <button class="chief" disabled=${looking.busy} onClick=${() => look({ ...body, dryRun: true })}>Show what goes</button></p>`
      : html`<p>In this order:</p><ol class="names">${going.going.map((ref) => html`<li><${Thing} name=${ref} /></li>`)}</ol>
        <label>Type <code>${body.name}</code> to say so <input value=${typed} onInput=${(e) => setTyped(e.target.value)} /></label>
        <${Failure} error=${doing.error} />
        <p class="answers"><button onClick=${close}>Cancel</button>
          ${doing.error?.code === "plan-stale" && html`<button disabled=${looking.busy} onClick=${() => look({ ...body, dryRun: true })}>Show what goes now</button>`}
          <button class="grave" disabled=${typed !== body.name || doing.busy} onClick=${() => send({ ...body, id: going.id })}>Retire</button></p>`}
  <//>`;
}
