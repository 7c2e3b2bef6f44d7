import { WatchError } from "./errors.js";

/** Compares two versions, which are decimal numbers that may exceed 2^53. */
export const compare = (a, b) => a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);

/** Returns the identity of an object in its collection. */
export const keyOf = ({ metadata: { namespace, name } }) => (namespace ? `${namespace}/${name}` : name);

/**
 * The position from which a watch can resume.
 *
 * Several events may share a version, because a foreign writer can change several objects in one
 * transaction. If the connection breaks between them, a watch from that version would not repeat
 * the rest. So `version` becomes V only after an event newer than V, or a bookmark at V or later,
 * and repeated events are recognized by version and key.
 */
export class ResumePoint {
  /** Whether the state is complete. Until then there is no version to resume from. */
  synced = false;
  /** Whether the server has sent `version`; otherwise the caller did. */
  confirmed = false;
  version = "";
  #group = ""; // the version of the newest events, if more of them may follow
  #keys = new Set(); // the keys of these events

  /** @param {string} [version] a version that the caller has seen */
  constructor(version) {
    if (version) [this.synced, this.version] = [true, version];
  }

  /** Records an event and returns it as the reader sees it, or undefined if it is a repetition. */
  admit(event) {
    const { type, object } = event;
    const version = checkVersion(object);
    if (type === "BOOKMARK") return this.#bookmark(event, version);
    if (!this.synced) return event;
    const key = `${object.kind} ${keyOf(object)}`; // a union has several kinds
    if (version === this.#group) {
      if (this.#keys.has(key)) return undefined;
      this.#keys.add(key);
    } else if (compare(version, this.#group || this.version) > 0) {
      this.version = this.#group || this.version;
      this.#group = version;
      this.#keys = new Set([key]);
    } else {
      throw new WatchError("Corrupt", `received version ${version} after version ${this.#group || this.version}`);
    }
    this.confirmed = true;
    return event;
  }

  #bookmark(event, version) {
    if (!this.synced) {
      // A server that does not mark the end of the initial events sends its first bookmark after them.
      this.synced = this.confirmed = true;
      this.version = version;
      return { ...event, type: "SYNCED" };
    }
    if (compare(version, this.version) > 0) {
      this.confirmed = true;
      this.version = version;
    }
    if (this.#group && compare(version, this.#group) < 0) return undefined;
    this.#group = "";
    this.#keys.clear();
    return version === this.version ? event : undefined;
  }
}

function checkVersion(object) {
  const version = object?.metadata?.resourceVersion;
  if (typeof version === "string" && /^[1-9]\d*$/.test(version) && compare(version, "18446744073709551615") <= 0) return version;
  throw new WatchError("Unsupported", `resourceVersion ${JSON.stringify(version)}: must be a positive decimal number below 2^64 in a string`);
}
