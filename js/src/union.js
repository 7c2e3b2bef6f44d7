import { Collection } from "./collection.js";
import { WatchError } from "./errors.js";
import { watch } from "./watch.js";

const partsOf = "listwatch.dev/parts"; // in the SYNCED event of a union: the types of its parts

/** Follows several collections over one connection; see listwatch.d.ts. */
export function union(url, parts, options = {}) {
  const members = parts.map((part) => new Member(typeof part === "object" && !(part instanceof URL) ? part : { url: part }));
  new Union(members).run(withParts(url, members), options);
  return members.map((member) => member.collection);
}

/** Adds the URLs of the members to the URL of the union. */
function withParts(url, members) {
  const [before, query = ""] = String(url).split("?");
  const params = new URLSearchParams(query);
  for (const member of members) params.append("of", member.of());
  return `${before}?${params}`;
}

/** One collection of a union. */
class Member {
  #part;
  #apply; // passes an event to the collection
  onState;

  constructor(part) {
    this.#part = part;
    this.done = new Promise((resolve, reject) => Object.assign(this, { end: resolve, fail: reject }));
    this.collection = new Collection((follow, apply) => {
      [this.signal, this.onState, this.#apply] = [follow.signal, follow.onState, apply];
      return this.done;
    }, { key: part.key });
  }

  /** Returns the relative URL of the collection, with its selection. */
  of() {
    const { url, selector, fieldSelector, fields } = this.#part;
    const [path, query = ""] = String(url).split("?");
    const params = new URLSearchParams(query);
    for (const [name, value] of Object.entries({ labelSelector: selector, fieldSelector, fields })) {
      if (value) params.set(name, [params.get(name), value].filter(Boolean).join(","));
    }
    return [path, String(params)].filter(Boolean).join("?");
  }

  apply(event) {
    if (!this.signal.aborted) this.#apply(event);
  }
}

class Union {
  #members;
  #byType = new Map(); // the members by the type of their objects
  #initial = []; // the events before the next SYNCED event; undefined after it
  #controller = new AbortController();

  constructor(members) {
    this.#members = members;
  }

  async run(url, { signal, onState, ...options }) {
    const abort = () => this.#controller.abort();
    signal?.addEventListener("abort", abort);
    if (signal?.aborted) abort();
    for (const member of this.#members) {
      member.signal.addEventListener("abort", () => {
        member.end();
        if (this.#members.every(({ signal }) => signal.aborted)) abort();
      });
    }
    const follow = {
      ...options, signal: this.#controller.signal, relist: true, reconnect: true, bookmarks: true, resourceVersion: undefined, since: undefined,
      onState: (state) => {
        onState?.(state);
        for (const member of this.#members) member.onState(state);
      },
    };
    try {
      for await (const event of watch(url, follow)) this.#receive(event);
      for (const member of this.#members) member.collection.close();
    } catch (error) {
      for (const member of this.#members) member.fail(error);
    }
  }

  /** Passes event on. A state is passed on at once, when it is complete and the types of the parts are known. */
  #receive(event) {
    if (event.type === "RESET") this.#initial = [];
    this.#initial?.push(event);
    if (event.type === "SYNCED") {
      this.#learnTypes(event.object.metadata.annotations?.[partsOf]);
      const initial = this.#initial;
      this.#initial = undefined;
      for (const each of initial) this.#deliver(each);
    } else if (!this.#initial) {
      this.#deliver(event);
    }
  }

  #learnTypes(types) {
    const all = types?.split(",") ?? [...this.#byType.keys()]; // a list has no annotation
    if (all.length !== this.#members.length) throw new WatchError("Unsupported", "the server does not serve several collections as one watch");
    all.forEach((type, i) => this.#byType.set(type, this.#members[i]));
  }

  #deliver(event) {
    const { type, object } = event;
    if (type !== "ADDED" && type !== "MODIFIED" && type !== "DELETED") return this.#members.forEach((member) => member.apply(event));
    const member = this.#byType.get(typeOf(object));
    if (!member) throw new WatchError("Unsupported", `received an object of type ${typeOf(object)}, which is the type of no collection`);
    member.apply(event);
  }
}

/** Returns the type of an object as KIND.VERSION or KIND.VERSION.GROUP. */
const typeOf = ({ kind, apiVersion }) => [kind, ...(apiVersion ?? "").split("/").reverse()].join(".");
