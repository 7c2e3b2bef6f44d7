import { notify } from "./errors.js";
import { keyOf } from "./resume.js";
import { SavedCopy } from "./savedcopy.js";
import { onAbort } from "./signals.js";
import { stateOf, watch } from "./watch.js";

/** Follows a collection and keeps its objects; see listwatch.d.ts. */
export function collection(url, options = {}) {
  const follow = async (own, apply) => {
    for await (const event of watch(url, own)) apply(event);
  };
  return new Collection(follow, options, [String(url), options.selector, options.fieldSelector, options.fields]);
}

/** The objects at one moment. */
class Snapshot extends Map {
  status = "connecting";
  error = undefined;
}

export class Collection extends Snapshot {
  #controller = new AbortController();
  #listeners = new Set();
  #snapshot; // a copy of the objects, or undefined if it is out of date
  #isCurrent = false; // the objects are a state of the server and not one that is out of date
  #key;
  #keys = new Map(); // the keys of the objects by identity: the object of a DELETED event may have nothing else
  #copy; // undefined unless the objects are saved
  #isNotifying = false;
  #setReady;

  /**
   * @param {(options: object, apply: (event: object) => void) => Promise<void>} follow passes events to apply
   *   until options.signal is aborted
   * @param {object} options those of the watch, and key and persist
   * @param {any} [of] identifies what is followed, for persist
   */
  constructor(follow, { key = keyOf, signal, onState, persist, ...options }, of) {
    super();
    this.#key = key;
    this.ready = new Promise((resolve, reject) => (this.#setReady = { resolve, reject }));
    this.ready.catch(() => {}); // the error is also in this.error
    onAbort(signal, this.close);
    const own = {
      ...options, signal: this.#controller.signal, relist: true, reconnect: true, bookmarks: true, resourceVersion: undefined,
      onState: (state) => {
        notify(onState, state);
        this.#connection(state);
      },
    };
    const entries = () => [...this.#keys].map(([identity, key]) => [identity, this.get(key)]);
    if (persist) this.#copy = new SavedCopy(persist, of, entries, own.signal);
    this.#run(follow, own);
  }

  /**
   * Calls listener with a snapshot now and after each change. It returns a function that ends the
   * calls.
   */
  subscribe = (listener) => {
    const own = (snapshot) => listener(snapshot); // one function may subscribe twice
    this.#listeners.add(own);
    notify(own, this.getSnapshot());
    return () => this.#listeners.delete(own);
  };

  /** Returns a copy of the objects. It is the same one until something changes. */
  getSnapshot = () => {
    if (!this.#snapshot) this.#snapshot = Object.assign(new Snapshot(this), { status: this.status, error: this.error });
    return this.#snapshot;
  };

  /** Stops following. The objects remain. */
  close = () => this.#controller.abort();

  async #run(follow, own) {
    try {
      const saved = this.#copy && (await this.#copy.load());
      for (const object of saved?.objects ?? []) this.#set(object);
      if (saved) this.#change({ status: "reconnecting" });
      // With since, a state or a difference arrives in one piece, so the old objects remain visible until then.
      const since = { version: saved?.version, state: saved?.state };
      await follow({ ...own, since }, (event) => this.#apply(event));
      this.#change({ status: "closed" });
      this.#setReady.reject(new Error("the collection was closed"));
    } catch (error) {
      if (error.code === "Unauthorized" || error.code === "Forbidden") this.#copy?.remove();
      this.#change({ status: "failed", error });
      this.#setReady.reject(error);
    }
  }

  #apply(event) {
    const { type, object } = event;
    if (type === "RESET") this.#reset();
    else if (type === "SYNCED") this.#isCurrent = true;
    else if (type === "DELETED") this.#remove(object);
    else if (type !== "BOOKMARK") this.#set(object);
    if (!this.#isCurrent) return;
    this.#copy?.advance(event, object.metadata.annotations?.[stateOf]);
    if (type === "SYNCED") this.#setReady.resolve();
    if (type !== "BOOKMARK") this.#change({ status: "live", error: undefined });
  }

  #set(object) {
    const key = this.#key(object);
    this.#keys.set(keyOf(object), key);
    this.set(key, object);
    this.#copy?.changed(keyOf(object), object);
  }

  #remove(object) {
    const identity = keyOf(object);
    this.delete(this.#keys.get(identity));
    this.#keys.delete(identity);
    this.#copy?.changed(identity, undefined);
  }

  #reset() {
    this.#isCurrent = false;
    this.#keys.clear();
    this.clear();
    this.#copy?.reset();
  }

  #connection({ state, error }) {
    if (state === "waiting") this.#change({ status: this.#isCurrent || this.size ? "reconnecting" : "connecting", error });
    else if (this.#isCurrent) this.#change({ status: "live", error: undefined });
  }

  /** Notifies the listeners soon, and once for all changes until then. */
  #change(properties) {
    Object.assign(this, properties);
    this.#snapshot = undefined;
    if (this.#isNotifying) return;
    this.#isNotifying = true;
    setTimeout(() => {
      this.#isNotifying = false;
      for (const listener of this.#listeners) notify(listener, this.getSnapshot());
    });
  }
}
