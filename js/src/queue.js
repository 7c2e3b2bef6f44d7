import { WatchError } from "./errors.js";
import { onAbort } from "./signals.js";

// Neither WebSocket nor EventSource lets its reader slow down the server. If this many characters
// are waiting, the connection is closed, and the watch resumes when they have been read.
const maxWaiting = 16 << 20;

/** The stream of a WebSocket or EventSource: the events that it has delivered and the reader has not taken yet. */
export class Queue {
  headers = new Headers(); // a page cannot see them
  #texts = [];
  #size = 0;
  #ended = false;
  #error;
  #wake = () => {};
  #release;
  #forget;

  /**
   * @param {AbortSignal} signal ends the stream; it must not be aborted yet
   * @param {(error?: Error) => void} release is called at the end of the stream
   */
  constructor(signal, release) {
    this.#release = release;
    this.#forget = onAbort(signal, () => this.close(signal.reason));
  }

  /** Adds an event. If too many are waiting, the stream ends. */
  push(text) {
    if (this.#ended) return;
    this.#texts.push(text);
    this.#size += text.length;
    this.#wake();
    if (this.#size > maxWaiting) this.close(new WatchError("TooSlow", "events arrived faster than they were read"));
  }

  /** Ends the stream after the queued events. Without an error the end is clean. Only the first call has an effect. */
  close(error) {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    this.#forget();
    this.#release(error);
    this.#wake();
  }

  /** Returns the next event, or undefined at a clean end. */
  async read() {
    while (this.#texts.length === 0) {
      if (this.#error) throw this.#error;
      if (this.#ended) return undefined;
      await new Promise((resolve) => (this.#wake = resolve));
    }
    const text = this.#texts.shift();
    this.#size -= text.length;
    return text;
  }
}
