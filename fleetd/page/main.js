// The frame around the views: where to go, where one is, whether the daemon is heard.

import { html, render, useEffect, useErrorBoundary, useMemo, useRef, useState } from "./vendor/preact.js";
import { onStranger, whoami } from "./api.js";
import { useGet, usePlace } from "./hooks.js";
import { connection } from "./live.js";
import { Entrance, Me } from "./entrance.js";
import { Search } from "./search.js";
import { Help } from "./help.js";
import { Capacity } from "./views/capacity.js";
import { Credentials } from "./views/credentials.js";
import { Events } from "./views/events.js";
import { Incidents } from "./views/incidents.js";
import { PlanView } from "./views/plan.js";
import { Region } from "./views/region.js";
import { Regions } from "./views/regions.js";
import { ThingView } from "./views/thing.js";
import { Things } from "./views/things.js";
import { Kinds } from "./words.js";

const VIEWS = {
  "": Regions, region: Region, thing: ThingView, plan: PlanView, incidents: Incidents,
  events: Events, credentials: Credentials, capacity: Capacity, things: Things,
};
/** Name, address, key after `g`. */
export const PLACES = [
  ["Regions", "", "r"], ["Incidents", "incidents", "i"], ["Plan", "plan", "p"],
  ["Things", "things", "t"], ["Events", "events", "e"], ["Credentials", "credentials", "c"],
  ["Capacity", "capacity", "k"],
];

/** What is asked for while nobody is known would only be refused. */
function Page() {
  const [me, setMe] = useState(null);
  const [refused, setRefused] = useState(null);
  useEffect(() => {
    const stop = onStranger(setRefused);
    whoami().then(setMe, () => { /* the views say what is wrong */ });
    return stop;
  }, []);
  return refused ? html`<${Entrance} refused=${refused} />` : html`<${App} me=${me} />`;
}

function App({ me }) {
  const here = usePlace();
  const [over, setOver] = useState(null);
  const main = useRef(null);
  const [broken, mend] = useErrorBoundary();
  useKeys(setOver);
  const where = here.parts[0] ?? "";
  const address = here.parts.join("/");
  useEffect(() => { mend(); main.current?.scrollTo(0, 0); }, [address]);
  const View = VIEWS[where] ?? Nowhere;
  const known = useGet("/api/v1/kinds").data;
  const kinds = useMemo(() => new Set((known?.items ?? []).map((one) => one.kind)), [known]);
  return html`<${Kinds.Provider} value=${kinds}>
    <a class="skip" href="#main" onClick=${(e) => { e.preventDefault(); main.current.focus(); }}>To the content</a>
    <header class="top">
      <a class="brand" href="#/"><img src="/assets/icon.svg" alt="" width="22" height="22" /> fleetd</a>
      <button class="find" onClick=${() => setOver("search")} aria-keyshortcuts="/ Control+K">
        <span>Find anything by name</span> <kbd>/</kbd>
      </button>
      <${Connection} />
      <${Me} me=${me} />
      <button class="plain" onClick=${turn} title="light or dark" aria-label="Switch between light and dark">◑</button>
      <button class="plain" onClick=${() => setOver("help")} title="keys and signs" aria-label="Keys and signs">?</button>
    </header>
    <nav class="side" aria-label="Views">
      ${PLACES.map(([name, to]) => html`<a href=${`#/${to}`}
        aria-current=${(to || "") === where || (to === "" && where === "region") ? "page" : undefined}>${name}
        ${to === "incidents" && html`<${Count} />`}</a>`)}
    </nav>
    <main id="main" ref=${main} tabindex="-1">
      ${broken
        ? html`<p class="failure" role="alert">This view broke: ${String(broken.message ?? broken)}. <button onClick=${mend}>Try again</button></p>`
        : html`<${View} key=${where} here=${here} />`}
    </main>
    ${over === "search" && html`<${Search} close=${() => setOver(null)} />`}
    ${over === "help" && html`<${Help} close=${() => setOver(null)} places=${PLACES} />`}
  <//>`;
}

function Count() {
  const { data } = useGet("/api/v1/incidents");
  const count = data?.items.length ?? 0;
  if (!count) return null;
  return html`<b class="count" aria-label=${`${count} open`}>${count >= 100 ? "99+" : count}</b>`;
}

function Connection() {
  const [state, setState] = useState("connecting");
  useEffect(() => connection(setState), []);
  return html`<span class=${`connection ${state.replace(" ", "-")}`} role="status">${state}</span>`;
}

function Nowhere() {
  return html`<h1>There is nothing here</h1><p><a href="#/">All regions</a></p>`;
}

function turn() {
  const root = document.documentElement;
  const dark = root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try { localStorage.setItem("theme", root.dataset.theme); } catch { /* then for this time only */ }
}

/** `/` and Ctrl-K find, `?` helps, `g` and a letter goes somewhere. Not while a box is open, and at
 * once when it is closed: the page itself is asked, because what a view remembers comes later. */
function useKeys(setOver) {
  useEffect(() => {
    let going = 0;
    function pressed(event) {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        setOver("search");
        return;
      }
      if (document.querySelector("dialog[open]") || event.ctrlKey || event.metaKey || event.altKey) return;
      if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
      if (event.key === "/") { event.preventDefault(); setOver("search"); }
      else if (event.key === "?") setOver("help");
      else if (event.key === "g") going = performance.now();
      else if (performance.now() - going < 1500) {
        const found = PLACES.find(([, , key]) => key === event.key);
        going = 0;
        if (found) location.hash = `#/${found[1]}`;
      }
    }
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}

const root = document.getElementById("app");
root.textContent = "";
render(html`<${Page} />`, root);
