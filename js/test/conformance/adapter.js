// The control hook of docs/conformance-hook.md for this client, in Node.js and in browsers.
import { watch } from "../../listwatch.js";

// The suite compares objects byte by byte, so the text of each event is kept.
const parse = (text) => Object.defineProperty(JSON.parse(text), "text", { value: text });

/**
 * Returns a function that takes the suite's requests.
 *
 * @param {string[]} can the abilities of the platform, as the hook names them
 * @param {(line: string) => void} write sends a line to the suite
 * @param {(ca: string) => void} [trust] makes the platform trust a certificate authority
 */
export function adapter(can, write, trust) {
  const reply = (line) => write(JSON.stringify(line));
  const open = new Map();
  reply({ can: [...can, "resume", "initial", "idle", "refresh"] });
  return (line) => {
    const { watch: request, close, headers } = JSON.parse(line);
    if (close) {
      open.get(close.id)?.controller.abort();
      open.delete(close.id);
    } else if (headers) {
      open.get(headers.id)?.refreshed(headers.headers);
    } else {
      if (request.ca) trust(request.ca);
      const entry = { controller: new AbortController(), refreshed: () => {} };
      open.set(request.id, entry);
      run(request, entry, write, reply);
    }
  };
}

// The names of the transports here and in the hook.
const names = { h1: "fetch", ws: "websocket" };

async function run(request, entry, write, reply) {
  const { id, url, resourceVersion, transport, transports = [transport], limit, resume, idleTimeout } = request;
  const { signal } = entry.controller;
  let { headers } = request, isOpen = false;
  const onState = ({ state, transport: used, headers: received }) => {
    if (state !== "open") return;
    isOpen = true;
    reply({ id, status: used === "websocket" ? 101 : 200, headers: Object.fromEntries(received), transport: used });
  };
  const ask = async ({ refresh }) => {
    if (!refresh) return headers;
    const fresh = new Promise((resolve) => (entry.refreshed = resolve));
    reply({ id, refresh });
    return (headers = await fresh);
  };
  const options = {
    signal, headers: request.refresh ? ask : headers, onState, parse, reconnect: !!resume, relist: false, resourceVersion, maxEventSize: limit,
    transports: transports.map((name) => names[name]), bookmarks: new URL(url).searchParams.has("allowWatchBookmarks"), idleTimeout,
  };
  try {
    for await (const event of watch(url, options)) {
      if (event.type !== "SYNCED" || options.bookmarks) report(id, event, write, reply);
    }
    if (!signal.aborted) reply({ id, end: true });
  } catch (error) {
    reportError(id, error, isOpen && !resume, reply);
  }
}

function report(id, { type, object, text }, write, reply) {
  // A reply is a line. A newline in the text is between the tokens of the JSON.
  if (text) write(`{"id":${id},"event":${text.replace(/[\r\n]/g, " ")}}`);
  else if (type === "RESET") reply({ id, reset: true });
  else if (type !== "SYNCED") reply({ id, event: { type, object } }); // of a list
  else {
    const annotations = { "k8s.io/initial-events-end": "true" };
    reply({ id, event: { type: "BOOKMARK", object: { metadata: { resourceVersion: object.metadata.resourceVersion, annotations } } } });
  }
}

function reportError(id, error, isOpen, reply) {
  if (!error.status) return reply({ id, error: error.message, within: !!error.within, code: error.code });
  if (!isOpen) return reply({ id, status: error.status, body: error.body });
  reply({ id, event: { type: "ERROR", object: error.body } });
  reply({ id, end: true });
}
