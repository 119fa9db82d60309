// A region as a picture: a row per job, a column per zone, an arrow for what needs what.
//
// Boxes have one size, so where each lies is arithmetic on the width of the page, and arrows need
// no measuring. Only needs of the documents themselves are drawn; what one looks at shows also
// those of its parts.

import { html, useEffect, useRef, useState } from "./vendor/preact.js";
import { Bar, Sign } from "./words.js";

const W = 190;
const H = 72;
const GAP_X = 18;
const GAP_Y = 12;
const LEFT = 118;
const HEAD = 26;
const ROWS = [
  ["cloud", "Clouds"], ["hypervisor", "Hypervisors"], ["storage", "Storage"], ["arbiter", "Arbiter"],
  ["control-plane", "Control plane"], ["management", "Management"], ["serverpool", "Servers"], ["other", "Foundations"],
];

function rowOf(box) {
  if (box.kind === "cluster") return box.role ?? "other";
  return box.kind === "cloud" || box.kind === "serverpool" ? box.kind : "other";
}

/** Where everything lies. Columns: one per zone, and one for what is in several. */
export function layout(boxes, width) {
  const zones = [...new Set(boxes.flatMap((one) => (one.zones.length === 1 ? one.zones : [])))].sort();
  const columns = [null, ...zones];
  const rows = ROWS.filter(([name]) => boxes.some((one) => rowOf(one) === name));
  const most = columns.map((column) => Math.max(1, ...rows.map(([name]) => inCell(boxes, name, column).length)));
  // Columns share the width by how much is in their fullest cell.
  const room = Math.max(columns.length, Math.floor((width - LEFT) / (W + GAP_X)));
  const sum = most.reduce((a, b) => a + b, 0);
  let slots = most.map((count) => Math.max(1, Math.min(count, Math.floor((room * count) / sum))));
  if (sum <= room) slots = most;
  const lefts = slots.map((_, n) => LEFT + slots.slice(0, n).reduce((a, b) => a + b, 0) * (W + GAP_X));
  const at = new Map();
  const bands = [];
  let y = HEAD;
  for (const [name, title] of rows) {
    let lines = 1;
    columns.forEach((column, c) => inCell(boxes, name, column).forEach((box, n) => {
      const line = Math.floor(n / slots[c]);
      at.set(box.id, { x: lefts[c] + (n % slots[c]) * (W + GAP_X), y: y + line * (H + GAP_Y) });
      lines = Math.max(lines, line + 1);
    }));
    bands.push({ title, y, height: lines * (H + GAP_Y) - GAP_Y });
    y += lines * (H + GAP_Y) + 4;
  }
  const heads = columns.map((column, c) => ({
    title: column === null ? (zones.length ? "several zones" : "") : `zone ${column}`, x: lefts[c],
  }));
  const right = LEFT + slots.reduce((a, b) => a + b, 0) * (W + GAP_X);
  return { at, bands, heads, width: Math.max(width, right), height: y };
}

function inCell(boxes, row, column) {
  return boxes.filter((one) => rowOf(one) === row && (one.zones.length === 1 ? one.zones[0] : null) === column);
}

export function Picture({ data, chosen, choose }) {
  const frame = useRef(null);
  const [width, setWidth] = useState(1000);
  const [over, setOver] = useState(null);
  useEffect(() => {
    const size = new ResizeObserver(([entry]) => setWidth(Math.floor(entry.contentRect.width)));
    size.observe(frame.current);
    return () => size.disconnect();
  }, []);
  const boxes = data.boxes;
  const { at, bands, heads, width: wide, height } = layout(boxes, width);
  const focus = over ?? chosen;
  const near = new Set(focus ? [focus] : []);
  for (const one of data.arrows) {
    if (one.source === focus) near.add(one.target);
    if (one.target === focus) near.add(one.source);
  }
  return html`<div class="picture" ref=${frame} role="region" aria-label="Picture of the region" tabindex="0">
    <div class="sheet" style=${{ width: `${wide}px`, height: `${height}px` }}>
      <svg width=${wide} height=${height} aria-hidden="true">
        <defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 L8 4 L0 8 z" /></marker></defs>
        ${data.arrows.filter((one) => one.direct || one.source === focus || one.target === focus).map((one) => html`<${Arrow} from=${at.get(one.source)} to=${at.get(one.target)}
          strong=${focus && (one.source === focus || one.target === focus)} faint=${Boolean(focus)} />`)}
      </svg>
      ${heads.map((one) => html`<span class="zone" style=${{ left: `${one.x}px` }}>${one.title}</span>`)}
      ${bands.map((one) => html`<span class="band" style=${{ top: `${one.y}px`, height: `${one.height}px` }}>${one.title}</span>`)}
      ${boxes.map((one) => html`<${Box} key=${one.id} one=${one} at=${at.get(one.id)} chosen=${one.id === chosen}
        dim=${focus && !near.has(one.id)} choose=${choose} look=${setOver} />`)}
    </div>
  </div>`;
}

function Box({ one, at, chosen, dim, choose, look }) {
  const state = one.state;
  const moving = one.states.moving ?? 0;
  const good = one.states.ready ?? 0;
  return html`<button class=${`box ${state} ${dim ? "dim" : ""} ${moving ? "busy" : ""}`} aria-pressed=${chosen}
      style=${{ left: `${at.x}px`, top: `${at.y}px`, width: `${W}px`, height: `${H}px` }}
      onClick=${() => choose(one.id)} onMouseEnter=${() => look(one.id)} onMouseLeave=${() => look(null)}
      onFocus=${() => look(one.id)} onBlur=${() => look(null)}>
    <span class="name"><${Sign} state=${state} label=${one.ready.status === "True" ? "Ready" : one.ready.reason} /> <b>${one.name}</b>
      <span class="version">${one.version ?? ""}</span></span>
    <${Bar} states=${one.states} total=${one.total} />
    <span class="line"><span>${good} of ${one.total}${moving ? `, ${moving} moving` : state === "ready" || state === "waiting" ? "" : `, ${one.ready.reason}`}</span>
      <span class="dim">${one.zones.join(" ")}</span></span>
  </button>`;
}

function Arrow({ from, to, strong, faint }) {
  if (!from || !to) return null;
  const down = to.y >= from.y;
  const x1 = from.x + W / 2;
  const x2 = to.x + W / 2;
  const y1 = from.y === to.y ? from.y : down ? from.y + H : from.y;
  const y2 = from.y === to.y ? to.y : down ? to.y : to.y + H;
  const bend = from.y === to.y ? -24 : (y2 - y1) / 2;
  const path = from.y === to.y
    ? `M${x1} ${y1} C${x1} ${y1 + bend} ${x2} ${y2 + bend} ${x2} ${y2}`
    : `M${x1} ${y1} C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}`;
  return html`<path class=${`arrow ${strong ? "strong" : faint ? "faint" : ""}`} d=${path} marker-end="url(#tip)" />`;
}
