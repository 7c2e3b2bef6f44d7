/** Compares two versions, which are decimal numbers that may exceed 2^53. */
const compare = (a, b) => a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);

/** How far a collection has followed its server. */
export class Position {
  #newest = ""; // the version of the newest event, of which more may follow

  constructor({ version, state } = {}) {
    this.since = { version, state }; // what the option `since` of `watch` needs
  }

  /** Records that the collection has an event. */
  advance({ type, object: { metadata } }) {
    let { version, state } = this.since;
    if (type === "SYNCED" || type === "BOOKMARK") {
      version = metadata.resourceVersion;
      state = metadata.annotations?.["listwatch.dev/state"] ?? state;
    } else if (metadata.resourceVersion !== this.#newest) {
      version = this.#newest || version;
    }
    this.#newest = metadata.resourceVersion;
    this.since = { version, state };
  }

  /** Whether the collection has everything up to a version. A write of this page is the only event of its version. */
  includes(version) {
    return this.#newest !== "" && compare(this.#newest, version) >= 0;
  }
}
