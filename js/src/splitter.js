import { WatchError } from "./errors.js";

// V8 parses deeper values, but code that walks them may overflow its stack.
const maxDepth = 10_000;

const [quote, backslash, openArray, openObject, closeArray, closeObject] = Array.from('"\\[{]}', (c) => c.charCodeAt(0));

/**
 * Splits a text into JSON objects, however they are distributed over chunks and lines. It keeps
 * only the unfinished object and looks at each character once.
 */
export class Splitter {
  #limit;
  #pieces = []; // earlier chunks of the unfinished object
  #size = 0; // the length of these pieces
  #chunk = "";
  #start = 0; // where the unfinished object begins in the chunk
  #at = 0;
  #depth = 0;
  #quoted = false;
  #escaped = false;

  /** @param {number} limit the maximum number of characters of an object */
  constructor(limit) {
    this.#limit = limit;
  }

  /** Whether no object is unfinished. */
  get isEmpty() {
    return this.#depth === 0 && this.#chunk.slice(this.#at).trim() === "";
  }

  /** Adds a chunk. The caller must have called next until it returned undefined. */
  push(chunk) {
    if (this.#depth > 0) this.#keep(this.#chunk.slice(this.#start));
    this.#chunk = chunk;
    this.#start = this.#at = 0;
  }

  /** @returns {string | undefined} the text of the next object, or undefined if the next chunk is needed */
  next() {
    const chunk = this.#chunk;
    for (; this.#at < chunk.length; this.#at++) {
      if (!this.#endsObject(chunk.charCodeAt(this.#at))) continue;
      this.#keep(chunk.slice(this.#start, ++this.#at));
      const text = this.#pieces.join("");
      this.#pieces = [];
      this.#size = 0;
      return text;
    }
    if (this.#depth > 0) this.#checkSize(this.#size + chunk.length - this.#start);
    return undefined;
  }

  /** Advances the state by the character c, and reports whether it ends an object. */
  #endsObject(c) {
    if (this.#quoted) {
      if (this.#escaped) this.#escaped = false;
      else if (c === backslash) this.#escaped = true;
      else if (c === quote) this.#quoted = false;
    } else if (c === openObject || (c === openArray && this.#depth > 0)) {
      if (this.#depth++ === 0) this.#start = this.#at;
      if (this.#depth > maxDepth) throw new WatchError("Corrupt", `an event is nested more than ${maxDepth} levels deep`);
    } else if (this.#depth === 0) {
      if (c !== 32 && c !== 10 && c !== 13 && c !== 9) {
        throw new WatchError("Corrupt", `found ${JSON.stringify(String.fromCharCode(c))} between two events, want a JSON object`);
      }
    } else if (c === quote) this.#quoted = true;
    else if (c === closeObject || c === closeArray) return --this.#depth === 0;
    return false;
  }

  #keep(piece) {
    this.#pieces.push(piece);
    this.#checkSize((this.#size += piece.length));
  }

  #checkSize(size) {
    if (size > this.#limit) throw new WatchError("Corrupt", `an event is larger than the limit of ${this.#limit} characters`);
  }
}
