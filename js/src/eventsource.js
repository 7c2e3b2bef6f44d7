import { WatchError } from "./errors.js";
import { Queue } from "./queue.js";

const types = ["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", "message"];

/**
 * Opens a stream over an EventSource, which can send no headers and does not reveal why it failed.
 * It is closed at its first error, so that it never reconnects by itself.
 */
export function openEventSource({ url, headers, signal, maxEventSize, credentials }) {
  if (Object.keys(headers).length) throw new WatchError("Unsupported", "an EventSource cannot send headers");
  const source = new EventSource(url, { withCredentials: credentials === "include" });
  const queue = new Queue();
  const finish = (error) => {
    queue.end(error);
    signal.removeEventListener("abort", abort);
    source.close();
  };
  const abort = () => finish(signal.reason);
  signal.addEventListener("abort", abort);
  for (const type of types) {
    source.addEventListener(type, ({ data }) => {
      if (data.length > maxEventSize) finish(new WatchError("Corrupt", `an event is larger than the limit of ${maxEventSize} characters`));
      else if (!queue.push(data)) finish();
    });
  }
  return new Promise((resolve, reject) => {
    source.onopen = () => resolve({ headers: new Headers(), read: () => queue.read(), close: finish });
    source.onerror = () => {
      const error = new WatchError("Unavailable", "the EventSource lost its connection or was refused");
      finish(error);
      reject(error); // has no effect if it was open
    };
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
