import { statusError, WatchError } from "./errors.js";

const types = ["ADDED", "MODIFIED", "DELETED", "BOOKMARK"];

/** Returns the event with this text. An ERROR event is thrown. */
export function parseEvent(text, parse) {
  const event = parseJSON(text, parse);
  if (event?.type === "ERROR") throw statusError(0, event.object);
  if (!types.includes(event?.type)) {
    throw new WatchError("Unsupported", `received an event of type ${JSON.stringify(event?.type)}, want one of ${types}`);
  }
  if (!event.object?.metadata) throw new WatchError("Corrupt", `received an ${event.type} event without metadata`);
  return event;
}

/** Returns the objects of a list as initial events. The last event is SYNCED. */
export function parseList(text, parse) {
  const { kind, apiVersion, metadata, items } = parseJSON(text ?? "", parse);
  if (!metadata || !(items == null || Array.isArray(items))) throw new WatchError("Corrupt", "the response is not a list");
  const events = (items ?? []).map((object) => ({ type: "ADDED", object }));
  return [...events, { type: "BOOKMARK", object: { kind: kind?.replace(/List$/, ""), apiVersion, metadata } }];
}

function parseJSON(text, parse) {
  try {
    return parse(text);
  } catch (cause) {
    throw new WatchError("Corrupt", `received invalid JSON: ${cause.message}`, { cause });
  }
}
