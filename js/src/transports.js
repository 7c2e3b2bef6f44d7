import { connectionError, WatchError } from "./errors.js";
import { openEventSource } from "./eventsource.js";
import { defaultFetch, openFetch } from "./fetch.js";
import { onAbort } from "./signals.js";
import { openWebSocket } from "./websocket.js";

const all = {
  fetch: { open: openFetch, exists: (o) => !!(o.fetch ?? defaultFetch()) },
  websocket: { open: openWebSocket, exists: () => !!globalThis.WebSocket },
  eventsource: { open: openEventSource, exists: () => !!globalThis.EventSource },
};

const demotion = 600_000; // milliseconds for which a failed transport is tried last
const maxUnproductive = 2; // consecutive streams without an event after which a transport is demoted

// A server with one of these statuses refuses the transport and not the request. Other transports
// than fetch cannot see the status, so their errors have none.
const protocolRefusals = [426, 501, 505];

/** The transports of a watch, best first. One that fails is tried last for ten minutes. */
export class Transports {
  #candidates;
  #unproductive = 0;

  constructor(options) {
    const names = options.transports ?? Object.keys(all);
    for (const name of names) {
      if (!Object.hasOwn(all, name)) throw new TypeError(`transports: ${JSON.stringify(name)} is not one of ${Object.keys(all)}`);
    }
    this.#candidates = names.filter((name) => all[name].exists(options)).map((name) => ({ name, open: all[name].open, demotedUntil: 0 }));
  }

  /**
   * Opens a stream over the first transport that works, and demotes the ones that it tried before.
   * If all fail, none is demoted, because the reason is then not the transport. One that never
   * responds is demoted at once, because the idle timeout ends the whole attempt.
   */
  async open(request) {
    const failed = [];
    let error = new WatchError("Unsupported", "no transport exists here");
    for (const candidate of this.#ordered()) {
      request.signal.throwIfAborted(); // a WebSocket and an EventSource do not check the signal
      const forget = onAbort(request.signal, () => request.signal.reason?.idle && this.#demote(candidate));
      try {
        const stream = await candidate.open(request);
        failed.forEach((c) => this.#demote(c));
        return Object.assign(stream, { candidate });
      } catch (cause) {
        const e = connectionError(`${candidate.name} failed`, cause, request.signal);
        if (failed.length === 0 || e.status || (e.code === "Unavailable" && error.code !== "Unavailable" && !error.status)) error = e;
        if (request.signal.aborted || !isTransportFailure(e)) throw e;
        failed.push(candidate);
      } finally {
        forget();
      }
    }
    throw error;
  }

  /** Demotes the transport of a stream that has ended if it may be the reason. */
  ended(candidate, { error, received, lived }) {
    if (received > 0 || error?.woke || (!error && lived >= 1000)) this.#unproductive = 0;
    else this.#unproductive++;
    if (error?.code !== "Corrupt" && this.#unproductive < maxUnproductive) return;
    this.#unproductive = 0;
    this.#demote(candidate);
  }

  #demote(candidate) {
    candidate.demotedUntil = Date.now() + demotion;
  }

  #ordered() {
    const now = Date.now();
    const rank = (c) => Math.max(c.demotedUntil - now, 0);
    return [...this.#candidates].sort((a, b) => rank(a) - rank(b)); // stable
  }
}

function isTransportFailure(e) {
  if (e.status) return protocolRefusals.includes(e.status);
  return !e.refused && ["Unavailable", "Unsupported", "Corrupt"].includes(e.code);
}
