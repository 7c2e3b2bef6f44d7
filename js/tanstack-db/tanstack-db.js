import { objects, watch } from "listwatch";
import { Position } from "./position.js";
import { Writer } from "./writer.js";

const metadataKey = "listwatch"; // in the metadata of the collection: the position to resume from

/** Returns the key of an object. */
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

/** Writes what a watch delivers to a collection of TanStack DB. */
class Follower {
  #url;
  #options;
  #timeout;
  #of; // identifies what is followed
  #position = new Position();
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
    const { signal } = this.#options;
    const end = () => controller.abort();
    signal?.addEventListener("abort", end);
    if (signal?.aborted) end();
    this.#run(target, controller.signal).finally(() => signal?.removeEventListener("abort", end));
    return end;
  };

  async #run(target, signal) {
    const saved = target.metadata?.collection.get(metadataKey);
    const mayResume = saved?.of === this.#of;
    const position = (this.#position = new Position(mayResume ? saved : {}));
    let batch = []; // the events since the last commit
    let isTruncated = saved !== undefined && !mayResume; // the objects before the batch are not those of the server
    let isWhole = false; // the batch completes a state of the server
    let timer;
    const commit = () => {
      clearTimeout(timer);
      timer = undefined;
      if (signal.aborted) return;
      this.#commit(target, position, batch, isTruncated);
      [batch, isTruncated] = [[], false];
    };
    const onState = (state) => {
      this.#options.onState?.(state);
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

  /** Writes events as one transaction. The position is part of it, so it never claims more than the objects have. */
  #commit({ begin, write, truncate, commit, metadata }, position, events, isTruncated) {
    const deleted = new Set();
    begin();
    if (isTruncated) truncate();
    for (const event of events) {
      const { type, object } = event;
      position.advance(event);
      if (type === "SYNCED" || type === "BOOKMARK") continue;
      if (type === "DELETED") {
        const key = keyOf(object);
        deleted.add(key);
        write({ type: "delete", key });
      } else {
        write({ type: "update", value: object }); // it also inserts; with a key, persistence would take it for a deletion
      }
    }
    metadata?.collection.set(metadataKey, { of: this.#of, ...position.since });
    commit();
    for (const look of this.#waiting) look(deleted);
  }

  #setStatus(status, error) {
    if (status === this.#status.status && error === this.#status.error) return;
    this.#status = { status, error };
    for (const listener of this.#listeners) listener();
  }
}
