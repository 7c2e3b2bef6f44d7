import { WatchError } from "./errors.js";
import { Queue } from "./queue.js";
import { Splitter } from "./splitter.js";

const bearer = "base64url.bearer.authorization.k8s.io.";

/**
 * Opens a stream over a WebSocket. A page cannot set headers of its handshake, but a bearer token
 * can be sent as a subprotocol.
 */
export function openWebSocket({ url, headers, signal, maxEventSize }) {
  const at = new URL(url);
  at.protocol = at.protocol === "https:" ? "wss:" : "ws:";
  const socket = new WebSocket(at, protocolsFor(headers));
  const splitter = new Splitter(maxEventSize);
  return new Promise((resolve, reject) => {
    const queue = new Queue(signal, (error) => {
      socket.close();
      reject(error ?? new WatchError("Unavailable", "the WebSocket was closed at once")); // has no effect if it was open
    });
    socket.onmessage = ({ data }) => {
      try {
        queue.push(parseMessage(splitter, data));
      } catch (error) {
        queue.close(error);
      }
    };
    socket.onopen = () => resolve(queue);
    socket.onclose = ({ code, reason }) => {
      const clean = code === 1000 || code === 1001;
      queue.close(clean ? undefined : new WatchError("Unavailable", `the WebSocket was closed with code ${code}${reason && `: ${reason}`}`));
    };
    // Node.js 22 fires no close event if the handshake fails. In browsers it follows at once.
    socket.onerror = () => setTimeout(() => socket.onclose({ code: 1006, reason: "" }));
  });
}

function protocolsFor(headers) {
  const { authorization, ...others } = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  const token = /^bearer +(\S+)$/i.exec(authorization ?? "")?.[1];
  if (Object.keys(others).length || (authorization && !token)) {
    throw new WatchError("Unsupported", "a WebSocket can send no header but Authorization with a bearer token");
  }
  if (!token) return [];
  const text = btoa(token).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  return ["listwatch.v1.json", bearer + text];
}

/** Returns the text of a message, which must be one event. */
function parseMessage(splitter, data) {
  if (typeof data === "string") splitter.push(data);
  const text = splitter.next();
  if (text === undefined || !splitter.isEmpty) throw new WatchError("Corrupt", "a message is not the text of exactly one event");
  return text;
}
