import { notify, WatchError } from "./errors.js";
import { objects } from "./objects.js";
import { keyOf } from "./resume.js";
import { maxTimeout, onAbort, onWake, sleep } from "./signals.js";

const defaultInterval = 10_000; // milliseconds
const leaveTimeout = 5000; // milliseconds

// The codes of errors that a retry cannot repair.
const permanent = ["Conflict", "Forbidden", "Unauthorized", "NotFound", "Invalid", "Unsupported"];

const replaced = new WatchError("Conflict", "another page has created the object");

// The annotation holds a random text, by which a page recognizes the object that it has created, even
// if the response to the create was lost.
const annotation = "listwatch.dev/presence";

/** Keeps an object alive while the page is visible; see listwatch.d.ts. */
export const presence = (url, object, options) => new Presence(url, object, options);

class Presence {
  #url;
  #object;
  #options;
  #objects;
  #closing = new AbortController();
  #id = [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(36)).join("");
  #uid; // of the object; undefined while it is not known to exist
  #preferences; // of renewals
  #wasHeld = false;
  #ended;

  constructor(url, object, { every = defaultInterval, onState, ...options } = {}) {
    this.#url = url;
    this.#object = structuredClone(object);
    const metadata = (this.#object.metadata ??= {});
    if (!metadata.name) throw new WatchError("Invalid", "the object has no name");
    metadata.annotations = { ...metadata.annotations, [annotation]: this.#id };
    this.#options = options;
    // A renewal does not need the object. A server of another origin may not permit the header.
    const { document, location } = globalThis;
    if (!location || new URL(url, document?.baseURI ?? location.href).origin === location.origin) this.#preferences = "return=minimal";
    onAbort(options.signal, () => this.#closing.abort());
    // With half the interval, two renewals without a response leave time for a third one.
    const idleTimeout = Math.max(every / 2, 1000);
    this.#objects = objects(url, { idleTimeout, ...options, signal: this.#closing.signal });
    this.#ended = this.#run(every, onState);
  }

  close = async () => {
    this.#closing.abort();
    await this.#ended;
  };

  async #run(every, onState) {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      let wait = every;
      try {
        if (!globalThis.document?.hidden) await this.#renew(onState);
      } catch (error) {
        if (signal.aborted) break;
        if (this.#uid && error.code === "NotFound") {
          this.#uid = undefined;
          notify(onState, { state: "lost", error });
          continue;
        }
        if (permanent.includes(error.code)) return notify(onState, { state: "failed", error });
        wait = every / 4;
        notify(onState, { state: "waiting", error });
      }
      await this.#pause(wait);
    }
    await this.#leave();
  }

  /** Renews the object, or creates it. */
  async #renew(onState) {
    if (this.#uid) {
      return this.#objects.patch(keyOf(this.#object), { metadata: { uid: this.#uid } }, undefined, this.#preferences).catch((error) => {
        // A Kubernetes API server responds with 422 if the object has another uid.
        throw error.body?.details?.causes?.some(({ field }) => field === "metadata.uid") ? replaced : error;
      });
    }
    const created = await this.#enter();
    this.#uid = created.metadata.uid;
    this.#wasHeld = true;
    notify(onState, { state: "present", object: created });
  }

  /**
   * Creates the object. If an earlier page has left one, it is deleted first. It is not updated, because
   * the earlier page may still be open: it would renew the object of this page, and delete it at its end.
   */
  async #enter() {
    const key = keyOf(this.#object);
    try {
      return await this.#objects.create(this.#object);
    } catch (error) {
      if (error.code !== "AlreadyExists") throw error;
    }
    try {
      const { metadata, ...rest } = await this.#objects.get(key);
      if (metadata.annotations?.[annotation] === this.#id) return { metadata, ...rest };
      if (this.#wasHeld) throw replaced;
      await this.#objects.delete(key, { uid: metadata.uid });
      return await this.#objects.create(this.#object);
    } catch (error) {
      // Unless the object was replaced, another writer was faster, so try again.
      if (error !== replaced && ["NotFound", "Conflict"].includes(error.code)) throw new WatchError("Unavailable", error.message, { cause: error });
      throw error;
    }
  }

  /**
   * Waits until the next renewal, and no longer than until the page is visible again. The time is random, so
   * that pages that failed together do not retry together.
   */
  async #pause(wait) {
    const pause = new AbortController();
    const forget = onAbort(this.#closing.signal, () => pause.abort());
    onWake(() => pause.abort(), pause.signal);
    await sleep(globalThis.document?.hidden ? maxTimeout : wait * (0.75 + Math.random() / 4), pause.signal);
    pause.abort();
    forget();
  }

  /** Deletes the object. If that fails, it ends after its TTL. */
  async #leave() {
    if (!this.#uid) return;
    const once = objects(this.#url, { ...this.#options, signal: AbortSignal.timeout(leaveTimeout) });
    await once.delete(keyOf(this.#object), { uid: this.#uid }).catch(() => {});
  }
}
