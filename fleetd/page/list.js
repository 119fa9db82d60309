// A list of any length, of which only what is in view is drawn. Rows have one height.

import { html, useEffect, useRef, useState } from "./vendor/preact.js";

const ROW = 34;
const BESIDE = 12;

/** `columns`: [{name, width, cell(item)}]; `to(item)` is where Enter and a click lead. */
export function List({ items, columns, to, label, total }) {
  const box = useRef(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  const [at, setAt] = useState(0);
  useEffect(() => {
    const element = box.current;
    let asked = 0;
    const look = () => {
      asked = 0;
      setView({ top: element.scrollTop, height: element.clientHeight });
    };
    const soon = () => { asked ||= requestAnimationFrame(look); };
    const size = new ResizeObserver(soon);
    size.observe(element);
    element.addEventListener("scroll", soon, { passive: true });
    look();
    return () => {
      size.disconnect();
      element.removeEventListener("scroll", soon);
      cancelAnimationFrame(asked);
    };
  }, []);
  const first = Math.max(0, Math.floor(view.top / ROW) - BESIDE);
  const last = Math.min(items.length, Math.ceil((view.top + view.height) / ROW) + BESIDE);
  const grid = { gridTemplateColumns: columns.map((one) => one.width).join(" ") };
  function pressed(event) {
    const page = Math.floor(view.height / ROW) - 1;
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -items.length, End: items.length };
    if (event.key === "Enter" && items[at] && event.target === box.current) location.hash = to(items[at]);
    else if (event.key in moves) {
      const next = Math.max(0, Math.min(items.length - 1, at + moves[event.key]));
      setAt(next);
      const { scrollTop, clientHeight } = box.current;
      if (next * ROW < scrollTop) box.current.scrollTop = next * ROW;
      else if ((next + 1) * ROW > scrollTop + clientHeight) box.current.scrollTop = (next + 1) * ROW - clientHeight;
    } else return;
    event.preventDefault();
  }
  return html`<div class="list" role="table" aria-label=${label} aria-rowcount=${total ?? items.length}>
    <div class="row head" role="row" style=${grid}>
      ${columns.map((one) => html`<span role="columnheader">${one.name}</span>`)}
    </div>
    <div class="body" ref=${box} tabindex="0" role="rowgroup" aria-label=${`${label}, arrow keys move`} onKeyDown=${pressed}>
      <div class="all" role="presentation" style=${{ height: `${items.length * ROW}px` }}>
        ${items.slice(first, last).map((item, n) => html`
          <div key=${first + n} class=${`row ${first + n === at ? "at" : ""}`} role="row" aria-rowindex=${first + n + 1}
              style=${{ ...grid, transform: `translateY(${(first + n) * ROW}px)` }}
              onClick=${(e) => { setAt(first + n); if (e.target.tagName !== "A") location.hash = to(item); }}>
            ${columns.map((one) => html`<span role="cell">${one.cell(item)}</span>`)}
          </div>`)}
      </div>
    </div>
  </div>`;
}
