import { WatchError } from "./errors.js";
import { maxTimeout, onAbort } from "./signals.js";

const silent = "the server was silent";

/** Ends a wait when its caller aborts, or when nothing arrives for longer than the idle timeout. */
export class Guard {
  #controller = new AbortController();
  #idleTimeout;
  #limit; // of the wait in progress, in milliseconds; undefined while nothing is awaited
  #what;
  #timer;
  #forget;
  #last = Date.now(); // not performance.now: that clock may stop while the machine sleeps
  /** The milliseconds for which the caller has waited. */
  waited = 0;

  /**
   * @param {AbortSignal} [parent]
   * @param {number} idleTimeout milliseconds; a negative value disables all limits
   */
  constructor(parent, idleTimeout) {
    this.#idleTimeout = Math.min(idleTimeout, maxTimeout);
    this.#forget = onAbort(parent, () => this.abort(parent.reason));
  }

  /** The signal of the request. */
  get signal() {
    return this.#controller.signal;
  }

  /** The milliseconds since the last sign of life. */
  get silence() {
    return Date.now() - this.#last;
  }

  /**
   * Waits for the promise of the server, or of a function of the page, for limit or the idle
   * timeout at most. The wait ends even if the promise never settles, because a function of a page
   * may ignore the signal. The idle timeout does not run while the caller is busy with what it has
   * received.
   */
  async wait(promise, limit = maxTimeout, what = silent) {
    let forget;
    const aborted = new Promise((_, reject) => (forget = onAbort(this.signal, () => reject(this.signal.reason))));
    const start = performance.now();
    [this.#limit, this.#what] = [Math.min(limit, this.#idleTimeout), what];
    this.alive();
    try {
      return await Promise.race([promise, aborted]);
    } finally {
      this.waited += performance.now() - start;
      this.#limit = undefined;
      clearTimeout(this.#timer);
      forget();
    }
  }

  /** Restarts the timeout, because the server has sent something. */
  alive = () => {
    this.#last = Date.now();
    clearTimeout(this.#timer);
    const limit = this.#limit;
    if (!(limit >= 0)) return;
    const error = () => new WatchError("Unavailable", `${this.#what} for ${limit / 1000} s`, { idle: this.#what === silent });
    this.#timer = setTimeout(() => this.abort(error()), limit);
  };

  abort = (reason) => this.#controller.abort(reason);

  /** Ends the request. */
  close() {
    this.#forget();
    clearTimeout(this.#timer);
    this.abort();
  }
}
