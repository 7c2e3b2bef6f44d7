import { connectionError, parseRetryAfter, statusError, WatchError } from "./errors.js";
import { Guard } from "./guard.js";
import { nodeFetch } from "./nodefetch.js";
import { onAbort } from "./signals.js";
import { Splitter } from "./splitter.js";

const maxErrorBody = 64 << 10;
const errorBodyTimeout = 5000; // milliseconds
const maxRedirects = 10;
const maxQuery = 4 << 10; // characters; many servers and proxies limit a URL to 8 KiB
const queryRetryInterval = 3_600_000; // milliseconds

/** The fetch that is used unless the options have one, or undefined. */
export const defaultFetch = () => (globalThis.process?.getBuiltinModule ? nodeFetch : globalThis.fetch);

const isRedirect = ({ type, status }) => type === "opaqueredirect" || [301, 302, 303, 307, 308].includes(status);

/**
 * Sends a request, and returns its response if that is a success and JSON, or has no content. A
 * DELETE needs no JSON: some servers respond with a text.
 *
 * fetch sends the headers of a page to the target of every redirect, except for Authorization.
 * Where redirects are visible, which is not the case in browsers, headers are not sent to another
 * origin. Browsers send them only to an origin that permits it by CORS. A write is not redirected:
 * fetch would send a GET after most redirects, which writes nothing.
 */
async function send({ url, headers, signal, fetch = defaultFetch(), credentials, method = "GET", body }) {
  const request = async (at, own, redirect) => {
    try {
      return await fetch(at, { method, body, headers: { Accept: "application/json", ...own }, signal, redirect, credentials, cache: "no-store" });
    } catch (cause) {
      throw connectionError("the request failed", cause, signal);
    }
  };
  let response = await request(url, headers, Object.keys(headers).length || method !== "GET" ? "manual" : "follow");
  if (method !== "GET" && isRedirect(response)) {
    throw new WatchError("Unsupported", `the server redirected the ${method}`, { status: response.status });
  }
  if (response.type === "opaqueredirect") response = await request(url, headers, "follow");
  for (let at = new URL(url), hops = 1; isRedirect(response); hops++) {
    if (hops > maxRedirects) throw new WatchError("Unavailable", `received more than ${maxRedirects} redirects`);
    const target = new URL(response.headers.get("location") ?? "", at);
    if (target.origin !== at.origin) headers = {};
    at = target;
    discard(response);
    response = await request(at, headers, "manual");
  }
  await check(response, method, signal);
  return response;
}

const discard = ({ body }) => body?.cancel?.().catch(() => {});

/**
 * Requests a list or a watch. Parameters that may be too long for a URL are sent in the body of a QUERY
 * (RFC 10008). If the server refuses that, it gets a GET, and for an hour only GETs.
 */
async function get(request) {
  const { url, headers, signal, server } = request;
  if (url.search.length <= maxQuery || Date.now() < server.refusesQueryUntil) return send(request);
  const first = await send({
    ...request, method: "QUERY", url: Object.assign(new URL(url), { search: "" }), body: url.search.slice(1),
    headers: { ...headers, "Content-Type": "application/x-www-form-urlencoded" },
  }).catch((error) => error);
  if (first.headers?.has("accept-query")) return first;
  // With status 200 the server may have ignored the method and the body. Without a status, CORS may not permit the method.
  signal.throwIfAborted();
  if (first.code !== "Unsupported" && ![0, 200, 400, 403].includes(first.status)) throw first;
  discard(first);
  const response = await send(request).catch((error) => {
    throw first.status ? error : first;
  });
  server.refusesQueryUntil = Date.now() + queryRetryInterval;
  return response;
}

async function check(response, method, signal) {
  const type = response.headers.get("content-type") ?? "";
  if (["GET", "QUERY"].includes(method) ? response.status !== 200 : !response.ok) {
    throw statusError(response.status, parseBody(await readSome(response, signal)), parseRetryAfter(response.headers.get("retry-after")));
  }
  if (method === "DELETE" || response.status === 204 || /^application\/json\s*(;|$)/i.test(type)) return;
  discard(response);
  throw new WatchError("Corrupt", `the server sent Content-Type ${JSON.stringify(type)}, want application/json`);
}

/** Returns the beginning of the body of a failed request. The status is known, so the body may break or not end. */
async function readSome({ body }, signal) {
  let text = "";
  if (!body) return text;
  const reader = body.getReader(), decoder = new TextDecoder(), guard = new Guard(signal, errorBodyTimeout);
  const read = async () => {
    for (let part; text.length <= maxErrorBody && !(part = await reader.read()).done; ) text += decoder.decode(part.value, { stream: true });
  };
  await guard.wait(read()).catch(() => {});
  guard.close();
  reader.cancel().catch(() => {});
  return text;
}

function parseBody(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Sends a request for one object, and returns the text of the response. */
export async function exchange(request) {
  const response = await send(request);
  try {
    return await response.text();
  } catch (cause) {
    throw connectionError("the connection broke", cause, request.signal);
  }
}

/** Opens a stream of JSON objects over fetch. The other transports return the same type. The request's signal closes it. */
export async function openFetch(request) {
  const response = await get(request);
  if (!response.body) throw new WatchError("Unsupported", "this fetch cannot stream responses");
  const reader = response.body.getReader();
  onAbort(request.signal, () => reader.cancel().catch(() => {})); // this fetch may ignore the signal
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const splitter = new Splitter(request.maxEventSize);
  const fill = async () => {
    let done, value;
    try {
      ({ done, value } = await reader.read());
    } catch (cause) {
      throw connectionError("the connection broke", cause, request.signal, !splitter.isEmpty);
    }
    request.onActivity();
    try {
      splitter.push(decoder.decode(value, { stream: !done }));
    } catch (cause) {
      throw new WatchError("Corrupt", "the stream is not valid UTF-8", { cause });
    }
    return !done;
  };
  return {
    headers: response.headers,
    /** Returns the text of the next event, or undefined at a clean end. */
    async read() {
      for (;;) {
        const text = splitter.next();
        if (text !== undefined) return text;
        if (await fill()) continue;
        if (splitter.isEmpty) return undefined;
        throw new WatchError("Unavailable", "the stream ended within an event", { within: true });
      }
    },
  };
}
