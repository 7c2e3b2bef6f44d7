import { objects, watch } from "listwatch";
import { Position } from "./position.js";
import { Writer } from "./writer.js";

const metadataKey = "listwatch"; // in the metadata of the collection: the position to resume from

const persistenceTimeout = 10_000; // milliseconds for which the watch waits for the saved rows

const keyOf = ({ metadata: { namespace, name } }) => (namespace ? `${namespace}/${name}` : name);

/** Returns the options of a collection that follows a URL; see tanstack-db.d.ts. */
export function listwatchCollectionOptions(url, { writeTimeout = 5000, ...options } = {}) {
  const follower = new Follower(url, options, writeTimeout);
  const writer = new Writer(objects(url, options), follower);
  return {
    getKey: keyOf,
    sync: { sync: follower.start, rowUpdateMode: "full" },
    onInsert: writer.insert,
    onUpdate: writer.update,
    onDelete: writer.delete,
    utils: { getStatus: follower.getStatus, subscribeStatus: follower.subscribeStatus, awaitVersion: follower.reached },
  };
}

/** Fulfilled when the signal is aborted. */
const aborted = (signal) => new Promise((resolve) => signal.addEventListener("abort", resolve));

/** Calls a function of the page. What it throws is reported like any uncaught error, and stops nothing else. */
function notify(f, value) {
  try {
    f?.(value);
  } catch (error) {
    if (globalThis.reportError) reportError(error);
    else queueMicrotask(() => Promise.reject(error)); // Node.js
  }
}

/** Writes what a watch delivers to a collection of TanStack DB. */
class Follower {
  #url;
  #options;
  #timeout;
  #of; // identifies what is followed
  #position = new Position();
  #keys; // the keys of the rows that the server has sent; undefined until they are known
  #waiting = new Set(); // functions that are called after each commit with the keys of deleted objects
  #status = { status: "connecting", error: undefined };
  #listeners = new Set();

  constructor(url, options, timeout) {
    [this.#url, this.#options, this.#timeout] = [url, options, timeout];
    this.#of = JSON.stringify([String(url), options.selector, options.fieldSelector, options.fields]);
  }

  getStatus = () => this.#status;

  subscribeStatus = (listener) => {
    const own = () => listener(); // one function may subscribe twice
    this.#listeners.add(own);
    return () => this.#listeners.delete(own);
  };

  /** Fulfilled when the collection has everything up to a version, or after the timeout. */
  reached = async (version) => {
    if (!this.#position.includes(version)) await this.#wait(() => this.#position.includes(version));
  };

  /** Fulfilled when the collection receives the deletion of an object, or after the timeout. */
  deleted = (key) => this.#wait((deleted) => deleted.has(key));

  #wait(isDone) {
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        this.#waiting.delete(look);
        resolve();
      };
      const look = (deleted) => isDone(deleted) && end();
      const timer = setTimeout(end, this.#timeout);
      timer.unref?.(); // Node.js: it keeps no process alive
      this.#waiting.add(look);
    });
  }

  /** Starts following, and returns a function that ends it. TanStack DB calls it for the first reader. */
  start = (target) => {
    const controller = new AbortController();
    const { signal = controller.signal } = this.#options;
    const saved = target.metadata?.collection.get(metadataKey);
    this.#run(target, AbortSignal.any([signal, controller.signal]), saved, saved?.of === this.#of);
    return () => controller.abort();
  };

  async #run(target, signal, saved, mayResume) {
    const position = new Position(mayResume ? saved : {});
    [this.#position, this.#keys] = [position, undefined];
    let batch = [], timer; // the events since the last commit, and the timer of the next one
    let isTruncated = saved !== undefined && !mayResume; // the objects before the batch are not those of the server
    let isWhole = false; // the batch completes a state of the server
    const commit = () => {
      timer = clearTimeout(timer); // undefined
      if (signal.aborted) return;
      this.#commit(target, position, batch, isTruncated);
      [batch, isTruncated] = [[], false];
    };
    const onState = (state) => {
      notify(this.#options.onState, state);
      if (state.state === "waiting") this.#setStatus(isWhole || mayResume ? "reconnecting" : "connecting", state.error);
      else if (isWhole) this.#setStatus("live");
    };
    this.#setStatus(mayResume ? "reconnecting" : "connecting");
    try {
      const own = { signal, onState, since: position.since, bookmarks: true, relist: true, reconnect: true, resourceVersion: undefined };
      for await (const event of watch(this.#url, { ...this.#options, ...own })) {
        if (event.type === "RESET") [batch, isTruncated, isWhole] = [[], true, false];
        else batch.push(event);
        if (event.type === "SYNCED") {
          const needsRows = mayResume && !isTruncated && !this.#keys;
          if (needsRows && !(await this.#hasRows(target, saved.count, signal))) return this.#run(target, signal, saved, false);
          isWhole = true;
          commit();
          target.markReady();
          this.#setStatus("live");
        } else if (isWhole) timer ??= setTimeout(commit); // once for all events that arrive together
      }
      if (position === this.#position) this.#setStatus("closed"); // otherwise another run has started
    } catch (error) {
      if (isWhole) commit();
      else target.markError(error);
      this.#setStatus("failed", error);
    }
  }

  /** Whether the collection has the saved rows. A new schema version removes them, but not the position. */
  async #hasRows({ begin, commit, collection }, count, signal) {
    begin();
    // Persistence applies it after the saved rows. A database that does not answer has none.
    await Promise.race([commit(), aborted(AbortSignal.any([signal, AbortSignal.timeout(persistenceTimeout)]))]);
    this.#keys = new Set(collection.keys());
    return this.#keys.size === count;
  }

  /** Writes events as one transaction. The position is part of it, so it never claims more than the objects have. */
  #commit({ begin, write, truncate, commit, metadata }, position, events, isTruncated) {
    const deleted = new Set();
    begin();
    if (isTruncated) truncate();
    if (isTruncated || !this.#keys) this.#keys = new Set();
    for (const event of events) {
      const { type, object } = event;
      position.advance(event);
      if (type === "SYNCED" || type === "BOOKMARK") continue;
      const key = keyOf(object);
      if (type === "DELETED") deleted.add(key) && this.#keys.delete(key);
      else this.#keys.add(key);
      // An update also inserts. Only deletions have a key: persistence takes any message with one for a deletion.
      write(type === "DELETED" ? { type: "delete", key } : { type: "update", value: object });
    }
    metadata?.collection.set(metadataKey, { of: this.#of, count: this.#keys.size, ...position.since });
    commit();
    for (const look of this.#waiting) look(deleted);
  }

  #setStatus(status, error) {
    if (status === this.#status.status && error === this.#status.error) return;
    this.#status = { status, error };
    for (const listener of this.#listeners) notify(listener);
  }
}
