import { WatchError } from "./errors.js";

// Neither WebSocket nor EventSource lets its reader slow down the server. If this many characters
// are waiting, the connection is closed, and the watch resumes when they have been read.
const maxWaiting = 16 << 20;

/** The events that a WebSocket or EventSource has delivered and the reader has not taken yet. */
export class Queue {
  #texts = [];
  #size = 0;
  #ended = false;
  #error;
  #wake = () => {};

  /** Adds an event. It returns false if the queue is full, and takes no more events. */
  push(text) {
    if (this.#ended) return false;
    this.#texts.push(text);
    this.#size += text.length;
    this.#wake();
    if (this.#size <= maxWaiting) return true;
    this.end(new WatchError("TooSlow", "events arrived faster than they were read"));
    return false;
  }

  /** Ends the stream after the queued events. Without an error the end is clean. Only the first call has an effect. */
  end(error) {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
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
