import { Backoff, isBrief } from "./backoff.js";
import { notify, WatchError } from "./errors.js";
import { Guard } from "./guard.js";
import { Requests, withDefaults } from "./requests.js";
import { ResumePoint } from "./resume.js";
import { onWake, sleep } from "./signals.js";

const defaults = { idleTimeout: 150_000, maxEventSize: 16 << 20, parse: JSON.parse, relist: true, reconnect: true, bookmarks: false, onState: () => {} };

export const stateOf = "listwatch.dev/state"; // in a SYNCED event: identifies the state, together with its version
const initialEventsSince = "listwatch.dev/initial-events-since"; // in a SYNCED event: the events before are a difference

// The time for which a server may lag behind a version that it has sent. It may be another replica.
const lagTolerance = 60_000;
// The number of streams that may end within the initial events before the collection is listed.
const maxTruncated = 3;
// The number of streams that may end at once, without an event, before the state is requested. A
// proxy may have removed the error of an expired version.
const maxBrief = 3;
const retryable = ["Unavailable", "Unknown", "TooSlow"];

/** Follows a collection; see listwatch.d.ts. */
export function watch(url, options = {}) {
  const merged = withDefaults(options, defaults);
  const watcher = new Watcher(new Requests(url, merged), merged);
  return merged.reconnect ? watcher.follow() : watcher.single();
}

class Watcher {
  #requests;
  #options;
  #signal;
  #point;
  #backoff = new Backoff();
  #hasState; // the reader has received events of a state, or brought its own
  #held; // the version and the text of the state that the reader has, which may be out of date
  #mustList = false; // the server cannot stream its state
  #truncated = 0; // consecutive streams that ended within the initial events
  #brief = 0; // consecutive streams that ended at once, without an event
  #corrupt = 0; // consecutive streams with invalid content
  #refreshed = false; // the stream was opened with fresh credentials
  #laggingSince = 0; // when the server first reported that it lags

  constructor(requests, options) {
    this.#requests = requests;
    this.#options = options;
    this.#signal = options.signal;
    this.#point = new ResumePoint(options.resourceVersion);
    this.#held = options.since;
    this.#hasState = this.#point.synced || !!options.since?.version;
  }

  /** Yields the events of one stream as the server sends them. */
  async *single() {
    let stream, error;
    try {
      stream = await this.#open(undefined);
      for (let event; (event = await stream.next()); ) yield event;
    } catch (e) {
      if (!this.#signal.aborted) throw (error = e);
    } finally {
      stream?.close(error);
    }
  }

  /** Yields the events of one stream after the other. */
  async *follow() {
    while (!this.#signal.aborted) {
      const end = { opened: false, received: 0, lived: 0, error: undefined };
      try {
        yield* this.#stream(end);
      } catch (error) {
        end.error = error;
      }
      if (this.#signal.aborted) return;
      if (end.error?.code === "NoContent") return; // the server asks not to reconnect (HTML, section 9.2.3)
      if (end.error?.woke) continue;
      this.#handle(end);
      // A stream that ends because its credentials have expired is no failure: the next one has fresh credentials.
      const error = end.error?.code === "Unauthorized" ? undefined : end.error;
      const delay = this.#backoff.delay({ ...end, error });
      this.#state({ state: "waiting", error, delay });
      await this.#pause(delay, !end.error?.retryAfter);
    }
  }

  #state(state) {
    notify(this.#options.onState, state);
  }

  /** Waits for a delay. It may end when the page is online or visible again. */
  async #pause(delay, mayEnd) {
    const guard = new Guard(this.#signal, -1);
    const wake = () => {
      this.#backoff = new Backoff();
      guard.abort();
    };
    if (mayEnd) onWake(wake, guard.signal);
    await sleep(delay, guard.signal);
    guard.close();
  }

  /** Yields the events of the next stream, and records in end how it ended. */
  async *#stream(end) {
    const begins = !this.#point.synced;
    if (begins && this.#mustList) yield* this.#list();
    let stream;
    const params = this.#params();
    try {
      stream = await this.#open(params);
    } catch (error) {
      if (this.#point.synced || (error.status !== 400 && error.status !== 422)) throw error;
      // If the list succeeds, the server cannot stream its state. Otherwise the list fails as well.
      yield* this.#list();
      this.#mustList = true;
      stream = await this.#open(this.#params());
    }
    end.opened = true;
    try {
      if (!this.#point.synced) yield* this.#held ? this.#difference(stream, params.initialEventsSince) : this.#reset();
      for (let event; (event = await this.#next(stream)); ) yield* this.#admit(event);
    } catch (error) {
      end.error = error;
    } finally {
      end.received = stream.received;
      end.lived = stream.lived;
      stream.close(end.error);
    }
  }

  /** Returns the next event, or undefined at a clean end. The initial events must end within the idle timeout. */
  async #next(stream) {
    const { idleTimeout } = this.#options;
    const isInitial = !this.#point.synced;
    // Changes of objects may follow them, so that the stream is never silent.
    if (isInitial && idleTimeout >= 0 && stream.waited > idleTimeout) throw new WatchError("Unavailable", "the initial events did not end", { idle: true });
    const event = await stream.next();
    if (isInitial && !event) throw new WatchError("Unavailable", "the stream ended within the initial events", { truncated: true });
    return event;
  }

  async #open(params) {
    this.#refreshed = this.#requests.refresh;
    const stream = await this.#requests.watch(params);
    this.#state({ state: "open", transport: stream.transport, headers: stream.headers });
    return stream;
  }

  /** The parameters of the next watch. It requests bookmarks, which advance the version of a quiet watch. */
  #params() {
    const { conflate } = this.#options; // in milliseconds
    const params = { watch: "true", allowWatchBookmarks: "true", ...(conflate >= 0 && { conflate: `${conflate}ms` }) };
    if (this.#point.synced) return { ...params, resourceVersion: this.#point.version };
    const initial = { ...params, sendInitialEvents: "true", resourceVersionMatch: "NotOlderThan" };
    const { version, state } = this.#held ?? {};
    return version && state ? { ...initial, initialEventsSince: version, initialEventsState: state } : initial;
  }

  /**
   * Yields the initial events of a stream at once. Only the last one tells whether they are the
   * changes since the given version or a whole state.
   */
  async *#difference(stream, since) {
    const events = [];
    while (events.at(-1)?.type !== "SYNCED") events.push(this.#point.admit(await this.#next(stream)));
    if (!since || events.at(-1).object.metadata.annotations?.[initialEventsSince] !== since) yield* this.#reset();
    for (const event of events) yield* this.#deliver(event);
  }

  async *#list() {
    const events = await this.#requests.list();
    yield* this.#reset();
    for (const event of events) {
      this.#signal.throwIfAborted();
      yield* this.#admit(event);
    }
  }

  /** Announces a new state, unless it is the first. */
  async *#reset() {
    if (this.#hasState) yield { type: "RESET", object: { metadata: {} } };
    this.#hasState = false;
  }

  async *#admit(event) {
    const admitted = this.#point.admit(event);
    if (admitted) yield* this.#deliver(admitted);
  }

  async *#deliver(admitted) {
    if (this.#held && (admitted.type === "SYNCED" || admitted.type === "BOOKMARK")) {
      this.#held = { state: admitted.object.metadata.annotations?.[stateOf] };
    }
    this.#corrupt = this.#truncated = this.#laggingSince = 0;
    this.#hasState = true;
    if (admitted.type !== "BOOKMARK" || this.#options.bookmarks) yield admitted;
  }

  /** Prepares the next stream after the previous one has ended, or throws an error that only the caller can handle. */
  #handle({ error, opened, lived, received }) {
    if (opened) this.#brief = isBrief({ opened, lived, received }) ? this.#brief + 1 : 0;
    if (this.#point.synced && this.#brief >= maxBrief && (!error || retryable.includes(error.code))) {
      this.#brief = 0;
      error = new WatchError("Expired", `${maxBrief} streams from version ${this.#point.version} ended at once, without an event`);
    }
    if (error?.code === "Expired" || (error?.code === "NotYet" && this.#lagsTooLong(error))) {
      if (!this.#options.relist) throw error;
      if (this.#held && this.#point.version) this.#held.version = this.#point.version;
      this.#point = new ResumePoint();
    } else if (error?.code === "Corrupt") {
      if (++this.#corrupt > 1) throw error;
      if (this.#held) this.#held = {}; // the reader's state may be wrong, too
    } else if (error?.code === "Unauthorized") {
      // The credentials have expired during the stream. A stream that was opened with fresh ones
      // must live for a moment, otherwise the server accepts none of them.
      if (!opened || typeof this.#options.headers !== "function" || (this.#refreshed && lived < 1000)) throw error;
      this.#requests.refresh = true;
    } else if (error && error.code !== "NotYet" && !retryable.includes(error.code)) {
      throw error;
    }
    // The server ignores sendInitialEvents, or its state arrives faster than it is read, or a
    // kube-apiserver cannot stream its state: over an etcd 3.4 it reports status 500.
    const isRefused = opened && error?.status === 500;
    if ((error?.idle || error?.code === "TooSlow" || isRefused) && !this.#point.synced) this.#mustList = true;
    if (error?.truncated && ++this.#truncated >= maxTruncated) this.#mustList = true;
  }

  #lagsTooLong(error) {
    if (!this.#point.confirmed) throw error; // the caller's version is not one of this server
    this.#laggingSince ||= performance.now();
    return performance.now() - this.#laggingSince > lagTolerance;
  }
}
