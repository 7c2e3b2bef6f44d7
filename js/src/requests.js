import { connectionError, WatchError } from "./errors.js";
import { parseEvent, parseList } from "./events.js";
import { exchange, openFetch } from "./fetch.js";
import { Guard } from "./guard.js";
import { onWake } from "./signals.js";
import { Transports } from "./transports.js";

// These parameters are set for each request, so the URL's own are ignored.
const owned = ["watch", "resourceVersion", "resourceVersionMatch", "sendInitialEvents", "initialEventsSince", "initialEventsState", "allowWatchBookmarks", "conflate", "limit", "continue", "pretty"];

const maxListSize = 256 << 20; // characters; V8 has no longer strings than 512 Mi

// A server sends the headers of a watch at once. If it does not, the connection is probably dead.
const openTimeout = 30_000;

// A connection that was silent for longer is given up when the page is online or visible again.
const maxSilence = 30_000;

/** Returns the options of a caller. An option that is undefined has its default. */
export function withDefaults(options = {}, defaults) {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  return { ...defaults, signal: new AbortController().signal, ...Object.fromEntries(given) };
}

/** Sends the lists and watches of one collection. */
export class Requests {
  #url;
  #options;
  #transports;
  #epoch = "";
  #server = { refusesQueryUntil: 0 }; // what was learned about it
  #openTimeout = openTimeout; // doubled after each failure, because a proxy may hold headers back until the first event
  /** Whether the next request needs fresh credentials. */
  refresh = false;

  constructor(url, options) {
    this.#options = options;
    this.#transports = new Transports(options);
    this.#url = new URL(url, globalThis.document?.baseURI ?? globalThis.location?.href);
    this.#url.hash = "";
  }

  /** Returns all objects and the version of the list. */
  list() {
    return this.#guarded(async (headers, guard) => {
      const stream = await openFetch(this.#request(guard, this.url({}), headers, maxListSize));
      this.#learnEpoch(stream.headers);
      return parseList(await stream.read(), this.#options.parse);
    });
  }

  /**
   * Opens a watch.
   *
   * @param {object} [params] the parameters of the request; if undefined, the URL has them
   * @returns {Promise<Stream>}
   */
  async watch(params) {
    const guard = this.#guard();
    const wake = () => guard.silence > maxSilence && guard.abort(new WatchError("Unavailable", "the page is back", { woke: true }));
    onWake(wake, guard.signal);
    try {
      const open = (headers) => this.#transports.open(this.#request(guard, this.url(params), headers, this.#options.maxEventSize));
      const stream = await this.#authorized(guard, open, this.#openTimeout);
      if (guard.waited < openTimeout) this.#openTimeout = openTimeout;
      guard.waited = 0;
      const before = this.#epoch;
      this.#learnEpoch(stream.headers);
      if (params?.resourceVersion && before && before !== this.#epoch) {
        throw new WatchError("Expired", "the versions of the server have started over", { status: 410 });
      }
      return new Stream(stream, guard, this.#options.parse, this.#transports);
    } catch (error) {
      guard.close();
      if (error?.idle) this.#openTimeout *= 2;
      throw error;
    }
  }

  /**
   * Sends a request for one object.
   *
   * @param {string} method
   * @param {URL} url
   * @param {string} [body] JSON
   * @param {string} [type] the type of the body
   * @param {string} [preferences] the value of the header Prefer
   * @returns {Promise<string>} the text of the response
   */
  exchange(method, url, body, type = "application/json", preferences) {
    const own = { ...(body && { "Content-Type": type }), ...(preferences && { Prefer: preferences }) };
    return this.#guarded((headers, guard) => exchange({ ...this.#request(guard, url, { ...own, ...headers }), method, body }));
  }

  #guard() {
    return new Guard(this.#options.signal, this.#options.idleTimeout);
  }

  async #guarded(send) {
    const guard = this.#guard();
    try {
      return await this.#authorized(guard, send);
    } finally {
      guard.close();
    }
  }

  #request(guard, url, headers, maxEventSize) {
    const { fetch, credentials } = this.#options;
    return { url, headers, maxEventSize, fetch, credentials, signal: guard.signal, onActivity: guard.alive, server: this.#server };
  }

  /** Returns the URL with params in place of its own parameters, and with the selectors of the options. */
  url(params) {
    const url = new URL(this.#url);
    if (!params) return url;
    for (const name of owned) url.searchParams.delete(name);
    for (const [name, text] of [["labelSelector", this.#options.selector], ["fieldSelector", this.#options.fieldSelector]]) {
      if (text) url.searchParams.set(name, [url.searchParams.get(name), text].filter(Boolean).join(","));
    }
    if (this.#options.fields) url.searchParams.set("fields", this.#options.fields);
    for (const [name, value] of Object.entries(params)) url.searchParams.set(name, value);
    return url;
  }

  /** Calls send with the headers of the options, and once more with fresh ones after a 401. */
  async #authorized(guard, send, limit) {
    const { headers } = this.#options;
    const isFunction = typeof headers === "function";
    for (;;) {
      const refresh = this.refresh;
      const own = new Headers((isFunction ? await this.#ask(headers, guard) : headers) ?? {});
      this.refresh = false;
      guard.signal.throwIfAborted();
      try {
        return await guard.wait(send(Object.fromEntries(own), guard), limit);
      } catch (cause) {
        const error = connectionError("the request failed", cause, guard.signal);
        if (error.code !== "Unauthorized" || refresh || !isFunction) throw error;
        this.refresh = true;
      }
    }
  }

  /**
   * Calls the page's function for headers. Unless it is a WatchError, an error of the function
   * counts as temporary, because the server that issues tokens may be restarting.
   */
  async #ask(headers, guard) {
    try {
      return await guard.wait((async () => headers({ refresh: this.refresh }))(), undefined, "the function headers did not settle");
    } catch (cause) {
      throw connectionError("the function headers failed", cause, guard.signal);
    }
  }

  #learnEpoch(headers) {
    this.#epoch = headers.get("listwatch-epoch") ?? this.#epoch;
  }
}

/** The response to one watch. */
class Stream {
  #stream;
  #guard;
  #parse;
  #transports;
  #opened = performance.now();
  received = 0;

  constructor(stream, guard, parse, transports) {
    this.#stream = stream;
    this.#guard = guard;
    this.#parse = parse;
    this.#transports = transports;
  }

  /** The milliseconds for which the caller has waited for events. */
  get waited() {
    return this.#guard.waited;
  }

  get headers() {
    return this.#stream.headers;
  }

  get transport() {
    return this.#stream.candidate.name;
  }

  /** The milliseconds since the stream was opened. */
  get lived() {
    return performance.now() - this.#opened;
  }

  /** Returns the next event, or undefined at a clean end. An ERROR event is thrown. */
  async next() {
    const text = await this.#guard.wait(this.#stream.read());
    this.#guard.signal.throwIfAborted(); // events may still be buffered
    if (text === undefined) return undefined;
    this.received++;
    return parseEvent(text, this.#parse);
  }

  /** Closes the stream, and lets the transports know why it has ended. */
  close(error) {
    this.#transports.ended(this.#stream.candidate, { error, received: this.received, lived: this.lived });
    this.#guard.close();
  }
}
