import { Guard } from "./guard.js";
import { onAbort } from "./signals.js";

// All copies of an origin are in one database: objects under [name, identity], and a header under
// the name. The header identifies the source of the copy and its version.
const database = "listwatch";
const saveInterval = 2000; // milliseconds between two saves

// IndexedDB may not respond at all, for example in a damaged profile. A collection then begins
// without its copy. These are the limits of each wait in milliseconds.
const loadTimeout = 2000;
const saveTimeout = 30_000;

/** A copy of a collection in IndexedDB. */
export class SavedCopy {
  #name;
  #secrets; // Secrets may be saved
  #of; // identifies what is copied
  #entries; // returns the identity and the object of everything in the collection
  #signal;
  #writer = `${Date.now()} ${Math.random()}`;
  #mayWrite = !globalThis.navigator?.locks; // no other page writes the copy
  #timer; // of the next save
  #isSaving = false;
  #pending; // what was changed since the last save, by identity: an object, or undefined if it was deleted
  #state; // the text with which the server identifies the state
  #version; // a version from which the collection can resume
  #newest; // the version of the newest event, of which more may follow

  /**
   * @param {string | {name: string, secrets?: boolean}} persist
   * @param {any} of the URL and the selectors
   * @param {() => Iterable<[string, object]>} entries
   * @param {AbortSignal} signal ends the use of the copy
   */
  constructor(persist, of, entries, signal) {
    const { name, secrets = false } = typeof persist === "string" ? { name: persist } : persist;
    if (typeof name !== "string" || !name) throw new TypeError("persist: the name must be a string that is not empty");
    [this.#name, this.#secrets, this.#of, this.#entries, this.#signal] = [name, secrets, JSON.stringify(of), entries, signal];
    const hold = () => new Promise((release) => {
      this.#mayWrite = true;
      signal.addEventListener("abort", release);
    });
    globalThis.navigator?.locks?.request(`listwatch ${name}`, { signal }, hold).catch(() => {}); // aborted
    globalThis.document?.addEventListener("visibilitychange", () => document.hidden && this.#timer && this.#save(), { signal });
  }

  /** Returns the header and the objects of the copy, or undefined if there is no copy of this collection. */
  async load() {
    try {
      const use = (headers, all) => ({ header: headers.get(this.#name), objects: all.getAll(this.#range()) });
      const { header, objects } = await this.#transact("readonly", use, new Guard(this.#signal, loadTimeout));
      if (header?.of === this.#of && header.count === objects.length) return { ...header, objects };
    } catch {
      // Without a copy, the server sends the whole state.
    }
    return undefined;
  }

  /** Removes the copy for good, because the page may not have the objects. */
  remove() {
    this.#secrets = this.#mayWrite = false;
    clearTimeout(this.#timer);
    this.#transact("readwrite", (headers, all) => ({ header: headers.delete(this.#name), objects: all.delete(this.#range()) })).catch(() => {});
  }

  /** Records that an object has changed. object is undefined if it was deleted. */
  changed(identity, object) {
    this.#pending?.set(identity, object);
  }

  /** Records that the next state has nothing in common with the last one. */
  reset() {
    this.#pending = this.#version = this.#newest = undefined;
  }

  /** Records that the collection has received an event after its objects were complete. */
  advance({ type, object: { kind, metadata } }, state) {
    if (type === "SYNCED") this.#state = state;
    if (kind === "Secret" && !this.#secrets) return this.remove();
    const version = metadata.resourceVersion;
    if (type === "SYNCED" || type === "BOOKMARK") this.#version = version;
    else if (version !== this.#newest) this.#version = this.#newest ?? this.#version;
    this.#newest = version;
    this.#schedule();
  }

  #schedule() {
    if (this.#mayWrite && !this.#isSaving) this.#timer ??= setTimeout(() => this.#save(), saveInterval);
  }

  /** Saves what has changed. The header is part of the transaction, so it never claims a version that the objects do not have. */
  async #save() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (!this.#version || this.#signal.aborted) return;
    this.#isSaving = true; // if this save fails, the next one must not continue from it
    const entries = [...this.#entries()];
    const header = { of: this.#of, writer: this.#writer, version: this.#version, state: this.#state, count: entries.length };
    const pending = this.#pending;
    this.#pending = new Map();
    try {
      await this.#transact("readwrite", (headers, all) => {
        headers.get(this.#name).onsuccess = ({ target }) => {
          const continues = pending && target.result?.writer === this.#writer;
          if (!continues) all.delete(this.#range());
          for (const [identity, object] of continues ? pending : entries) {
            if (object) all.put(object, [this.#name, identity]);
            else all.delete([this.#name, identity]);
          }
          headers.put(header, this.#name);
        };
        return {};
      });
    } catch {
      this.#pending = undefined; // for example, the disk is full: try again with everything
    }
    this.#isSaving = false;
    if (this.#pending?.size) this.#schedule();
  }

  #range() {
    return IDBKeyRange.bound([this.#name], [this.#name, []]); // an array is greater than any string
  }

  /** Runs a transaction, and returns the results of the requests that use returns. */
  async #transact(mode, use, guard = new Guard(undefined, saveTimeout)) {
    try {
      const db = await guard.wait(open(guard.signal));
      const transaction = db.transaction(["headers", "objects"], mode);
      const requests = Object.entries(use(transaction.objectStore("headers"), transaction.objectStore("objects")));
      await guard.wait(new Promise((resolve, reject) => Object.assign(transaction, { oncomplete: resolve, onabort: () => reject(transaction.error) })));
      return Object.fromEntries(requests.map(([name, request]) => [name, request.result]));
    } finally {
      guard.close();
    }
  }
}

/** Opens the database until the signal is aborted, even if the browser opens it only then. */
function open(signal) {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(database, 1);
    request.onupgradeneeded = () => ["headers", "objects"].forEach((name) => request.result.createObjectStore(name));
    request.onsuccess = () => {
      resolve(request.result);
      onAbort(signal, () => request.result.close());
    };
    request.onerror = () => reject(request.error);
  });
}
