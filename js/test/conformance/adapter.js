// The control hook of docs/conformance-hook.md for this client, in Node.js and in browsers.
import { watch } from "../../listwatch.js";

// The suite compares objects byte by byte, so the text of each event is kept.
const parse = (text) => Object.defineProperty(JSON.parse(text), "text", { value: text });

/**
 * Returns a function that takes the suite's requests.
 *
 * @param {string[]} can the transports, as the hook names them
 * @param {(line: string) => void} write sends a line to the suite
 */
export function adapter(can, write) {
  const reply = (line) => write(JSON.stringify(line));
  const open = new Map();
  reply({ can: [...can, "resume"] });
  return (line) => {
    const request = JSON.parse(line);
    if (request.close) {
      open.get(request.close.id)?.abort();
      open.delete(request.close.id);
      return;
    }
    const controller = new AbortController();
    open.set(request.watch.id, controller);
    run(request.watch, controller.signal, write, reply);
  };
}

// The names of the transports here and in the hook.
const names = { h1: "fetch", ws: "websocket" };

async function run({ id, url, resourceVersion, transport, transports = [transport], headers, limit, resume }, signal, write, reply) {
  let isOpen = false;
  const onState = ({ state, transport: used, headers: received }) => {
    if (state !== "open") return;
    isOpen = true;
    reply({ id, status: used === "websocket" ? 101 : 200, headers: Object.fromEntries(received), transport: used });
  };
  const options = {
    signal, headers, onState, parse, reconnect: !!resume, relist: false, resourceVersion, maxEventSize: limit,
    transports: transports.map((name) => names[name]), bookmarks: new URL(url).searchParams.has("allowWatchBookmarks"),
  };
  try {
    for await (const event of watch(url, options)) {
      if (event.text) write(`{"id":${id},"event":${event.text}}`);
    }
    if (!signal.aborted) reply({ id, end: true });
  } catch (error) {
    report(id, error, isOpen && !resume, reply);
  }
}

function report(id, error, isOpen, reply) {
  if (!error.status) return reply({ id, error: error.message, within: !!error.within, code: error.code });
  if (!isOpen) return reply({ id, status: error.status, body: error.body });
  reply({ id, event: { type: "ERROR", object: error.body } });
  reply({ id, end: true });
}
