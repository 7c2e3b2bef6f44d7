import { maxTimeout } from "./backoff.js";
import { WatchError } from "./errors.js";

/** Aborts a request when its caller does, or when the server is silent for longer than the idle timeout. */
export class Guard {
  #controller = new AbortController();
  #parent;
  #idleTimeout;
  #timer;
  #waiting = false;
  #abort = () => this.#controller.abort(this.#parent.reason);

  /**
   * @param {AbortSignal} parent
   * @param {number} idleTimeout milliseconds; a negative value disables the timeout
   */
  constructor(parent, idleTimeout) {
    this.#parent = parent;
    this.#idleTimeout = Math.min(idleTimeout, maxTimeout);
    parent.addEventListener("abort", this.#abort);
    if (parent.aborted) this.#abort();
  }

  /** The signal of the request. */
  get signal() {
    return this.#controller.signal;
  }

  /** Waits for the server. The timeout does not run while the caller is busy with what it has received. */
  async wait(promise) {
    this.#waiting = true;
    this.alive();
    try {
      return await promise;
    } finally {
      this.#waiting = false;
      clearTimeout(this.#timer);
    }
  }

  /** Restarts the timeout, because the server has sent something. */
  alive = () => {
    clearTimeout(this.#timer);
    if (!this.#waiting || this.#idleTimeout < 0) return;
    const silent = () => this.#controller.abort(new WatchError("Unavailable", "the server was silent for longer than the idle timeout", { idle: true }));
    this.#timer = setTimeout(silent, this.#idleTimeout);
  };

  /** Ends the request. */
  close() {
    this.#parent.removeEventListener("abort", this.#abort);
    clearTimeout(this.#timer);
    this.#controller.abort();
  }
}
