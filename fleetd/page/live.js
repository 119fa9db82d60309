// One stream of events from the daemon, shared by everything on the page.
//
// The stream says that something happened; who shows it asks again for what it shows. Where the
// stream is cut, the browser takes it up again after the last number it saw.

const listeners = new Set();
const watchers = new Set();
let source = null;
let connected = "connecting";

function tell(state) {
  if (state === connected) return;
  connected = state;
  for (const one of watchers) one(state);
}

function start() {
  if (source) return;
  source = new EventSource("/api/v1/watch");
  source.onopen = () => {
    tell("live");
    for (const one of listeners) one(null);
  };
  source.onerror = () => {
    tell("cut off");
    // A browser gives up for good when the answer was not a stream; we do not.
    if (source.readyState === EventSource.CLOSED) {
      source = null;
      setTimeout(() => { if (listeners.size) start(); }, 5000);
    }
  };
  const heard = (message) => {
    let event = null;
    try {
      event = JSON.parse(message.data);
    } catch { return; }
    for (const one of listeners) one(event);
  };
  source.onmessage = heard;
  source.addEventListener("event", heard);
}

/** Calls back with each event, and with null when the stream begins anew. */
export function listen(callback) {
  listeners.add(callback);
  start();
  return () => listeners.delete(callback);
}

export function connection(callback) {
  watchers.add(callback);
  callback(connected);
  return () => watchers.delete(callback);
}
