import { maxTimeout, onAbort } from "./backoff.js";
import { WatchError } from "./errors.js";

/** Aborts a request when its caller does, or when the server is silent for longer than the idle timeout. */
export class Guard {
  #controller = new AbortController();
  #idleTimeout;
  #timer;
  #waiting = false;
  #forget;

  /**
   * @param {AbortSignal} parent
   * @param {number} idleTimeout milliseconds; a negative value disables the timeout
   */
  constructor(parent, idleTimeout) {
    this.#idleTimeout = Math.min(idleTimeout, maxTimeout);
    this.#forget = onAbort(parent, () => this.#controller.abort(parent.reason));
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
    const silent = () => this.#controller.abort(new WatchError("Unavailable", "the server was silent for the idle timeout", { idle: true }));
    this.#timer = setTimeout(silent, this.#idleTimeout);
  };

  /** Ends the request. */
  close() {
    this.#forget();
    clearTimeout(this.#timer);
    this.#controller.abort();
  }
}
