/** An error of a request. */
export class WatchError extends Error {
  name = "WatchError";
  status = 0;
  retryAfter = 0;
  body = undefined;

  /**
   * @param {string} code what the caller can do; listwatch.d.ts lists the codes
   * @param {string} message
   * @param {object} [more] other properties
   */
  constructor(code, message, more) {
    super(message);
    this.code = code;
    Object.assign(this, more);
  }
}

const codes = {
  401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 405: "Unsupported", 406: "Unsupported",
  409: "Conflict", 410: "Expired", 412: "Conflict", 415: "Unsupported", 426: "Unsupported",
  501: "Unsupported", 505: "Unsupported",
  408: "Unavailable", 421: "Unavailable", 425: "Unavailable", 429: "Unavailable",
  502: "Unavailable", 503: "Unavailable", 504: "Unavailable", 507: "Unavailable",
};

/**
 * Returns the error that a server reported, as the response to a request or as an ERROR event.
 *
 * @param {number} status the status of the response; 0 for an ERROR event
 * @param {unknown} body a Status of Kubernetes, or a text
 * @param {number} [retryAfter] milliseconds from the header Retry-After
 */
export function statusError(status, body, retryAfter = 0) {
  const known = body?.kind === "Status" ? body : {};
  status ||= known.code || 500;
  let code = codes[status] ?? (status >= 400 && status < 500 ? "Invalid" : "Unknown");
  if (status === 504 && known.details?.causes?.some((cause) => cause.reason === "ResourceVersionTooLarge")) code = "NotYet";
  if (status === 409 && known.reason === "AlreadyExists") code = "AlreadyExists";
  if (status === 204) code = "NoContent";
  const text = known.message ?? (typeof body === "string" ? body.replace(/<[^>]*>|\s+/g, " ").trim().slice(0, 200) : "");
  const seconds = Number(known.details?.retryAfterSeconds) || 0;
  return new WatchError(code, `the server responded ${status}${text && `: ${text}`}`, {
    status, body, retryAfter: retryAfter || Math.max(1000 * seconds, 0),
  });
}

/** Calls a function of the page. Its error is reported as uncaught, and has no other effect. */
export function notify(f, value) {
  try {
    f?.(value);
  } catch (error) {
    if (globalThis.reportError) reportError(error);
    else queueMicrotask(() => Promise.reject(error)); // Node.js
  }
}

/**
 * Returns the error of a request that failed with cause. It is the reason if the request was
 * aborted, cause if that is a WatchError, and otherwise a temporary error.
 */
export function connectionError(what, cause, signal, within = false) {
  if (signal.aborted) return signal.reason;
  if (cause instanceof WatchError) return cause;
  const reason = cause?.cause?.message || cause?.message || String(cause);
  return new WatchError("Unavailable", `${what}: ${reason}`, { cause, within, refused: (cause?.cause ?? cause)?.code === "ECONNREFUSED" });
}

/** Returns the milliseconds of a Retry-After header, which has seconds or a date (rfc9110#section-10.2.3). */
export function parseRetryAfter(text) {
  if (!text) return 0;
  const wait = /^\d+$/.test(text) ? 1000 * Number(text) : Date.parse(text) - Date.now();
  return wait > 0 ? wait : 0;
}
