// What the keys do and what the signs mean.

import { html } from "./vendor/preact.js";
import { Dialog } from "./dialog.js";
import { MEANING, ORDER, Sign } from "./words.js";

export function Help({ close, places }) {
  return html`<${Dialog} title="Keys and signs" close=${close}>
    <div class="two">
      <dl class="keys">
        <dt><kbd>/</kbd> or <kbd>Ctrl</kbd> <kbd>K</kbd></dt><dd>find anything by name</dd>
        ${places.map(([name, , key]) => html`<dt><kbd>g</kbd> <kbd>${key}</kbd></dt><dd>${name}</dd>`)}
        <dt><kbd>↑</kbd> <kbd>↓</kbd> <kbd>Enter</kbd></dt><dd>move in a list, open</dd>
        <dt><kbd>Esc</kbd></dt><dd>close</dd>
      </dl>
      <dl class="keys">
        ${ORDER.map((state) => html`<dt><${Sign} state=${state} /> ${state}</dt><dd>${MEANING[state]}</dd>`)}
      </dl>
    </div>
  <//>`;
}
