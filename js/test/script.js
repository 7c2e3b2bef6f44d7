// A scripted server, and a reader that records what a watch delivers.
import { watch } from "../listwatch.js";

export const object = (name, resourceVersion, more) => ({ metadata: { name, resourceVersion }, ...more });
export const event = (type, name, version, more) => ({ type, object: object(name, version, more) });
export const synced = (version) => event("BOOKMARK", "", version);
export const status = (code, more) => ({ kind: "Status", code, message: `status ${code}`, ...more });
export const json = (body, init) => new Response(JSON.stringify(body), { headers: { "Content-Type": "application/json", ...init?.headers }, status: init?.status ?? 200 });

/** A response that sends events, and then ends, breaks, or stays open. */
export function stream(events, end = "open") {
  const body = new ReadableStream({
    start(controller) {
      for (const e of events) controller.enqueue(new TextEncoder().encode(JSON.stringify(e) + "\n"));
      if (end === "end") controller.close();
    },
    pull(controller) {
      if (end === "break") controller.error(new TypeError("terminated"));
      return new Promise(() => {}); // stays open
    },
  }, { highWaterMark: 0 });
  return new Response(body, { headers: { "Content-Type": "application/json" } });
}

/** Returns a response whose body breaks when the signal is aborted, as with any fetch. */
export function abortable(response, signal) {
  if (!response.body) return response;
  const { readable, writable } = new TransformStream();
  response.body.pipeTo(writable, { signal }).catch(() => {});
  return new Response(readable, { status: response.status, headers: response.headers });
}

/** A fetch that answers each request with the next response, and records the requests. */
export function script(...responses) {
  const requests = [];
  const fetch = async (url, init) => {
    const { method, body, headers, signal } = init;
    requests.push({ method, body, params: Object.fromEntries(new URL(url).searchParams), headers, signal });
    const next = responses.shift() ?? stream([]);
    if (next instanceof Error) throw next;
    return abortable(next, init.signal);
  };
  return { fetch, requests, transports: ["fetch"] };
}

/** Returns the first n events of a watch, as short texts. */
export async function take(n, server, options) {
  const controller = new AbortController();
  const seen = [];
  for await (const { type, object } of watch("http://server/things", { ...server, signal: controller.signal, ...options })) {
    seen.push([type, object.metadata.name, object.metadata.resourceVersion].filter(Boolean).join(" "));
    if (seen.length === n) controller.abort();
  }
  return seen;
}
