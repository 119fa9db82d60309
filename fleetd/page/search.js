// Finds anything by a part of its name, while one types.

import { html, useEffect, useRef, useState } from "./vendor/preact.js";
import { get, query } from "./api.js";
import { Dialog } from "./dialog.js";
import { Sign, toThing } from "./words.js";

const PAUSE = 60;

export function Search({ close }) {
  const [words, setWords] = useState("");
  const [found, setFound] = useState({ items: [], error: null, words: "" });
  const [at, setAt] = useState(0);
  const input = useRef(null);
  useEffect(() => input.current.focus(), []);
  useEffect(() => {
    if (!words.trim()) { setFound({ items: [], error: null, words }); return undefined; }
    const abort = new AbortController();
    const due = setTimeout(async () => {
      try {
        const { items } = await get(`/api/v1/search${query({ q: words, limit: 20 })}`, abort.signal);
        setFound({ items, error: null, words });
        setAt(0);
      } catch (error) {
        if (!abort.signal.aborted) setFound({ items: [], error, words });
      }
    }, PAUSE);
    return () => { clearTimeout(due); abort.abort(); };
  }, [words]);
  function open(item) {
    close();
    location.hash = address(item);
  }
  function pressed(event) {
    const last = found.items.length - 1;
    if (event.key === "ArrowDown") setAt(Math.min(at + 1, last));
    else if (event.key === "ArrowUp") setAt(Math.max(at - 1, 0));
    else if (event.key === "Enter" && found.items[at]) open(found.items[at]);
    else return;
    event.preventDefault();
  }
  const none = found.words.trim() && !found.items.length && !found.error;
  return html`<${Dialog} title="Find anything by name" close=${close} kind="finding">
    <input ref=${input} type="text" role="combobox" aria-expanded=${found.items.length > 0}
      aria-controls="found" aria-activedescendant=${found.items.length ? `found-${at}` : undefined}
      aria-label="Name, or a part of it" placeholder="Name, or a part of it" autocomplete="off"
      spellcheck=${false} value=${words} onInput=${(e) => setWords(e.target.value)} onKeyDown=${pressed} />
    <ul id="found" role="listbox" aria-label="Found">
      ${found.items.map((item, n) => html`<li id=${`found-${n}`} role="option" aria-selected=${n === at}
          onMouseEnter=${() => setAt(n)} onClick=${() => open(item)}>
        <${Sign} state=${item.state} />
        <span class="kind">${item.kind}</span> <b>${item.name}</b> <span class="dim">${item.region}</span>
      </li>`)}
    </ul>
    ${found.error && html`<p class="failure" role="alert">${found.error.message}</p>`}
    ${none && html`<p class="dim" role="status">Nothing has that in its name.</p>`}
  <//>`;
}

function address(item) {
  return item.kind === "region"
    ? `#/region/${encodeURIComponent(item.name)}`
    : toThing(`${item.kind}/${item.name}`);
}
