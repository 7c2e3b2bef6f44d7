import { Collection } from "./collection.js";
import { notify, WatchError } from "./errors.js";
import { onAbort } from "./signals.js";
import { watch } from "./watch.js";

const partsOf = "listwatch.dev/parts"; // in the SYNCED event of a union: the types of its parts

/** Follows several collections over one connection; see listwatch.d.ts. */
export function union(url, parts, { signal, onState, ...options } = {}) {
  const controller = new AbortController();
  const end = () => controller.abort();
  onAbort(signal, end);
  const members = parts.map((part) => new Member(part.url ? part : { url: part }, () => members.every((m) => m.signal.aborted) && end()));
  follow(withParams(url, members.map(({ of }) => ["of", of])), members, {
    ...options, signal: controller.signal, relist: true, reconnect: true, bookmarks: true, resourceVersion: undefined,
    since: {}, // a difference arrives in one piece, so that all collections have the same version
    onState: (state) => [{ onState }, ...members].forEach((m) => notify(m.onState, state)),
  });
  return members.map(({ collection }) => collection);
}

/** Returns url with additional parameters. Selectors are added to the url's own. */
function withParams(url, params) {
  const [path, query] = String(url).split("?");
  const all = new URLSearchParams(query);
  for (const [name, value] of params) {
    if (name === "of") all.append(name, value);
    else if (value) all.set(name, [all.get(name), value].filter(Boolean).join());
  }
  return [path, String(all)].filter(Boolean).join("?");
}

/** One collection of a union. */
class Member {
  constructor({ url, selector, fieldSelector, fields, key }, onClose) {
    this.of = withParams(url, Object.entries({ labelSelector: selector, fieldSelector, fields }));
    const done = new Promise((resolve, reject) => Object.assign(this, { end: resolve, fail: reject }));
    this.collection = new Collection(({ signal, onState }, apply) => {
      Object.assign(this, { signal, onState, apply: (event) => signal.aborted || apply(event) });
      signal.addEventListener("abort", () => {
        this.end();
        onClose();
      });
      return done;
    }, { key });
  }
}

/**
 * Passes the events of the union to its members. A state is passed on when it is complete, because
 * the types of the parts are not known before.
 */
async function follow(url, members, options) {
  const byType = new Map(); // the members by the type of their objects
  let initial = []; // the events before the next SYNCED event; undefined after it
  const deliver = (event) => {
    const { type, object } = event;
    if (!["ADDED", "MODIFIED", "DELETED"].includes(type)) return members.forEach((member) => member.apply(event));
    const member = byType.get(typeOf(object));
    if (!member) throw new WatchError("Unsupported", `received an object of type ${typeOf(object)}, which is the type of no collection`);
    member.apply(event);
  };
  try {
    for await (const event of watch(url, options)) {
      if (event.type === "RESET") initial = [];
      if (!initial) deliver(event);
      else initial.push(event);
      if (event.type !== "SYNCED") continue;
      const types = event.object.metadata.annotations?.[partsOf]?.split(",") ?? [...byType.keys()]; // a list has no annotation
      if (types.length !== members.length) throw new WatchError("Unsupported", "the server does not serve several collections as one watch");
      types.forEach((type, i) => byType.set(type, members[i]));
      initial?.forEach(deliver); // a difference was delivered
      initial = undefined;
    }
    members.forEach(({ collection }) => collection.close());
  } catch (error) {
    members.forEach((member) => member.fail(error));
  }
}

/** Returns the type of an object as KIND.VERSION or KIND.VERSION.GROUP. */
const typeOf = ({ kind, apiVersion }) => [kind, ...(apiVersion ?? "").split("/").reverse()].join(".");
