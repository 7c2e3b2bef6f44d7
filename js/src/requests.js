import { WatchError } from "./errors.js";
import { parseEvent, parseList } from "./events.js";
import { exchange, openFetch } from "./fetch.js";
import { Guard } from "./guard.js";
import { Transports } from "./transports.js";

// These parameters are set for each request, so the URL's own are ignored.
const owned = ["watch", "resourceVersion", "resourceVersionMatch", "sendInitialEvents", "initialEventsSince", "initialEventsState", "allowWatchBookmarks", "conflate", "limit", "continue", "pretty"];

const maxListSize = 256 << 20; // characters; V8 has no longer strings than 512 Mi

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
    return this.#guarded(async (guard, headers) => {
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
    const guard = new Guard(this.#options.signal, this.#options.idleTimeout);
    try {
      const stream = await guard.wait(this.#authorized((headers) =>
        this.#transports.open(this.#request(guard, this.url(params), headers, this.#options.maxEventSize))));
      const before = this.#epoch;
      this.#learnEpoch(stream.headers);
      if (params?.resourceVersion && before && before !== this.#epoch) {
        throw new WatchError("Expired", "the versions of the server have started over", { status: 410 });
      }
      return new Stream(stream, guard, this.#options.parse, this.#transports);
    } catch (error) {
      guard.close();
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
   * @returns {Promise<string>} the text of the response
   */
  exchange(method, url, body, type = "application/json") {
    return this.#guarded((guard, headers) => exchange({
      ...this.#request(guard, url, body ? { "Content-Type": type, ...headers } : headers), method, body,
    }));
  }

  async #guarded(send) {
    const guard = new Guard(this.#options.signal, this.#options.idleTimeout);
    try {
      return await guard.wait(this.#authorized((headers) => send(guard, headers)));
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
  async #authorized(send) {
    const { headers } = this.#options;
    const isFunction = typeof headers === "function";
    for (;;) {
      const refresh = this.refresh;
      const own = new Headers((isFunction ? await this.#ask(headers) : headers) ?? {});
      this.refresh = false;
      try {
        return await send(Object.fromEntries(own));
      } catch (error) {
        if (error.code !== "Unauthorized" || refresh || !isFunction) throw error;
        this.refresh = true;
      }
    }
  }

  /**
   * Calls the page's function for headers. Its error passes, as that of a token's server that
   * restarts, unless the function throws a WatchError.
   */
  async #ask(headers) {
    try {
      return await headers({ refresh: this.refresh });
    } catch (error) {
      if (error instanceof WatchError) throw error;
      throw new WatchError("Unavailable", `the function headers failed: ${error?.message ?? error}`, { cause: error });
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
    this.#stream.close();
    this.#guard.close();
  }
}
