// What views share: data that stays fresh, the address as state, and the daemon's clock.

import { useEffect, useRef, useState } from "./vendor/preact.js";
import { get } from "./api.js";
import { listen } from "./live.js";

const FASTEST = 1000;
const SLOWEST = 30000;

/** What is at `path`, asked for again when something happened: at most once a second, at least
 *  twice a minute, and never while nobody looks. A null path asks for nothing. */
export function useGet(path) {
  const [found, setFound] = useState({ path: null, data: null, error: null });
  const again = useRef(() => {});
  useEffect(() => {
    if (path === null) return undefined;
    const abort = new AbortController();
    let due = null;
    let last = 0;
    let busy = false;
    let missed = false;
    async function load() {
      clearTimeout(due);
      if (busy) { missed = true; return; }
      busy = true;
      missed = false;
      last = performance.now();
      try {
        const data = await get(path, abort.signal);
        setFound((old) => (old.data === data && old.path === path && !old.error ? old : { path, data, error: null }));
      } catch (error) {
        if (abort.signal.aborted) return;
        setFound((old) => ({ path, data: old.path === path ? old.data : null, error }));
      } finally {
        busy = false;
      }
      if (!abort.signal.aborted) due = setTimeout(turn, missed ? FASTEST : SLOWEST);
    }
    /** `seen` goes on where nobody looked: an open page alone must not keep a session. */
    function turn() { if (!document.hidden) load(); }
    function soon() {
      if (document.hidden) { missed = true; return; }
      if (busy) { missed = true; return; }
      clearTimeout(due);
      due = setTimeout(turn, Math.max(0, last + FASTEST - performance.now()));
    }
    const seen = () => { if (!document.hidden) soon(); };
    again.current = soon;
    load();
    const stop = listen(soon);
    document.addEventListener("visibilitychange", seen);
    return () => {
      abort.abort();
      clearTimeout(due);
      stop();
      document.removeEventListener("visibilitychange", seen);
    };
  }, [path]);
  const fresh = found.path === path;
  return {
    data: fresh ? found.data : null,
    error: fresh ? found.error : null,
    again: () => again.current(),
  };
}

/** As it stands there if it is no good: an address is typed and cut by people. */
function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch { return part; }
}

/** The address: `#/region/eu-1?box=cluster/hv` is {parts: ["region", "eu-1"], query: {box: …}}. */
export function place() {
  const [path, rest] = location.hash.replace(/^#\/?/, "").split("?");
  return {
    parts: path.split("/").filter(Boolean).map(decoded),
    query: Object.fromEntries(new URLSearchParams(rest || "")),
  };
}

export function usePlace() {
  const [here, setHere] = useState(place);
  useEffect(() => {
    const moved = () => setHere(place());
    addEventListener("hashchange", moved);
    return () => removeEventListener("hashchange", moved);
  }, []);
  return here;
}

export function link(...parts) {
  const last = typeof parts.at(-1) === "object" ? parts.pop() : {};
  const given = Object.entries(last).filter(([, value]) => value !== undefined && value !== "");
  const rest = given.length ? `?${new URLSearchParams(given)}` : "";
  return `#/${parts.map(encodeURIComponent).join("/")}${rest}`;
}

/** Changes the question part of the address without adding a step to the history. */
export function narrow(changes) {
  const { parts, query } = place();
  history.replaceState(null, "", link(...parts, { ...query, ...changes }));
  dispatchEvent(new HashChangeEvent("hashchange"));
}

export function useTitle(words) {
  useEffect(() => { document.title = words ? `${words} · fleetd` : "fleetd"; }, [words]);
}
