import { WatchError } from "./errors.js";
import { Queue } from "./queue.js";

const types = ["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", "message"];

/**
 * Opens a stream over an EventSource, which can send no headers and does not reveal why it failed.
 * It is closed at its first error, so that it never reconnects by itself.
 */
export function openEventSource({ url, headers, signal, maxEventSize, credentials }) {
  if (Object.keys(headers).length) throw new WatchError("Unsupported", "an EventSource cannot send headers");
  return new Promise((resolve, reject) => {
    const source = new EventSource(url, { withCredentials: credentials === "include" });
    const queue = new Queue(signal, (error) => {
      source.close();
      reject(error); // has no effect if it was open
    });
    for (const type of types) {
      source.addEventListener(type, ({ data }) => {
        if (data.length > maxEventSize) queue.close(new WatchError("Corrupt", `an event is larger than the limit of ${maxEventSize} characters`));
        else queue.push(data);
      });
    }
    source.onopen = () => resolve(queue);
    source.onerror = () => queue.close(new WatchError("Unavailable", "the EventSource lost its connection or was refused"));
  });
}
