// Who is here: their name, the way out, and what is shown to those the daemon does not know.

import { html, useState } from "./vendor/preact.js";
import { post } from "./api.js";

const LONGEST = 1000;

export function Me({ me }) {
  const [error, setError] = useState(null);
  if (!me || me.how === "local") return null;
  async function leave() {
    try {
      location.assign((await post("/logout", {})).next);
    } catch (wrong) { setError(wrong); }
  }
  const where = me.regions ? ` in ${me.regions.join(", ")}` : "";
  return html`<span class="me" title=${`${me.role}${where}`}>${me.name} <span class="dim">${me.role}</span></span>
    ${me.how === "session" && html`<button class="plain" onClick=${leave}>Log out</button>`}
    ${error && html`<span class="failure" role="alert">${error.message}</span>`}`;
}

export function Entrance({ refused }) {
  const here = `/${location.hash}`;
  const next = here.length <= LONGEST ? here : "/";
  return html`<main class="entrance">
    <h1><img src="/assets/icon.svg" alt="" width="28" height="28" /> fleetd</h1>
    ${refused.login
      ? html`<p><a class="button" href=${`${refused.login}?next=${encodeURIComponent(next)}`}>Log in</a></p>`
      : html`<p>Nobody can log in with a browser here. The daemon says: ${refused.detail ?? refused.title}.</p>
        <p><code>fleetctl --token-file FILE tree</code> shows the same in a terminal.</p>`}
  </main>`;
}
