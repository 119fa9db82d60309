// A box over the page, the browser's own: it keeps the focus inside and gives it back.

import { html, useEffect, useRef } from "./vendor/preact.js";

export function Dialog({ title, close, children, kind = "" }) {
  const box = useRef(null);
  useEffect(() => {
    const before = document.activeElement;
    box.current.showModal();
    return () => before?.focus?.();
  }, []);
  return html`<dialog ref=${box} class=${kind} aria-label=${title} onClose=${close}
      onCancel=${(e) => { e.preventDefault(); close(); }}
      onMouseDown=${(e) => { if (e.target === box.current) close(); }}>
    <div class="box">
      ${kind !== "finding" && html`<header><h2>${title}</h2>
        <button class="plain" onClick=${close} aria-label="Close">×</button></header>`}
      ${children}
    </div>
  </dialog>`;
}
