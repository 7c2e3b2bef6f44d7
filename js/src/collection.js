import { keyOf } from "./resume.js";
import { watch } from "./watch.js";

/** Follows a collection and keeps its objects; see listwatch.d.ts. */
export const collection = (url, options) => new Collection(url, options);

/** The objects at one moment. */
class Snapshot extends Map {
  status = "connecting";
  error = undefined;
}

class Collection extends Snapshot {
  #controller = new AbortController();
  #listeners = new Set();
  #snapshot; // a copy of the objects, or undefined if it is out of date
  #next = new Map(); // the state that is being received; undefined once it is complete
  #isNotifying = false;
  #setReady;

  constructor(url, { key = keyOf, signal, onState, ...options } = {}) {
    super();
    this.ready = new Promise((resolve, reject) => (this.#setReady = { resolve, reject }));
    this.ready.catch(() => {}); // the error is also in this.error
    signal?.addEventListener("abort", this.close);
    if (signal?.aborted) this.close();
    const follow = { ...options, signal: this.#controller.signal, relist: true, reconnect: true, resourceVersion: undefined };
    const changed = (state) => {
      onState?.(state);
      this.#connection(state);
    };
    this.#run(watch(url, { ...follow, onState: changed }), key);
  }

  /** Calls listener with a snapshot now and after each change. It returns a function that ends this. */
  subscribe = (listener) => {
    const own = (snapshot) => listener(snapshot); // one function may subscribe twice
    this.#listeners.add(own);
    listener(this.getSnapshot());
    return () => this.#listeners.delete(own);
  };

  /** Returns a copy of the objects. It is the same one until something changes. */
  getSnapshot = () => {
    if (!this.#snapshot) this.#snapshot = Object.assign(new Snapshot(this), { status: this.status, error: this.error });
    return this.#snapshot;
  };

  /** Stops following. The objects remain. */
  close = () => this.#controller.abort();

  async #run(events, key) {
    try {
      for await (const event of events) this.#apply(event, key);
      this.#change({ status: "closed" });
      this.#setReady.reject(new Error("the collection was closed"));
    } catch (error) {
      this.#change({ status: "failed", error });
      this.#setReady.reject(error);
    }
  }

  #apply({ type, object }, key) {
    if (type === "RESET") this.#next = new Map();
    else if (type === "SYNCED") this.#complete();
    else if (type === "DELETED") (this.#next ?? this).delete(key(object));
    else if (type !== "BOOKMARK") (this.#next ?? this).set(key(object), object);
    if (!this.#next) this.#change({ status: "live", error: undefined });
  }

  /** Replaces the objects by the new state. Until then the old ones remain visible. */
  #complete() {
    this.clear();
    for (const [key, object] of this.#next ?? []) this.set(key, object);
    this.#next = undefined;
    this.#setReady.resolve();
  }

  #connection({ state, error }) {
    if (state === "waiting") this.#change({ status: this.#next && this.size === 0 ? "connecting" : "reconnecting", error });
    else if (!this.#next) this.#change({ status: "live", error: undefined });
  }

  /** Notifies the listeners soon, and once for all changes until then. */
  #change(properties) {
    Object.assign(this, properties);
    this.#snapshot = undefined;
    if (this.#isNotifying) return;
    this.#isNotifying = true;
    setTimeout(() => {
      this.#isNotifying = false;
      for (const listener of this.#listeners) listener(this.getSnapshot());
    });
  }
}
