/** An object of a collection, as the server sent it. */
export interface KubernetesObject {
  apiVersion?: string;
  kind?: string;
  metadata: {
    name: string;
    namespace?: string;
    uid?: string;
    /** A decimal number. It may exceed 2^53, so keep it as a string. */
    resourceVersion?: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
    [member: string]: unknown;
  };
  [member: string]: unknown;
}

/** A change of an object as this watch sees it. */
export interface ChangeEvent<T = KubernetesObject> {
  /** An object that starts or stops matching the selectors is ADDED or DELETED. */
  type: "ADDED" | "MODIFIED" | "DELETED";
  /**
   * For DELETED the last state that matched, with the version of the deletion. In a difference (see
   * `since`) it has only the kind and the name, namespace and version.
   */
  object: T;
}

/** An event about the watch and not about an object. */
export interface ControlEvent {
  /**
   * - `SYNCED`: the ADDED events before this one are the complete state, or the events before it a
   *   difference that completes the state of the reader. Its annotation `listwatch.dev/state` is
   *   what `since` needs.
   * - `RESET`: forget all objects; the current state follows as ADDED events and a SYNCED event.
   *   This happens if the history since the last event is lost, or if the connection broke before
   *   the first SYNCED event.
   * - `BOOKMARK`: nothing else has happened up to `metadata.resourceVersion`. Only with the option
   *   `bookmarks`.
   */
  type: "SYNCED" | "RESET" | "BOOKMARK";
  object: { metadata: { resourceVersion?: string; [member: string]: unknown } };
}

export type WatchEvent<T = KubernetesObject> = ChangeEvent<T> | ControlEvent;

/**
 * `fetch` reads a response as it arrives. `websocket` and `eventsource` work with proxies that
 * hold such responses back, but can send no headers, except for a bearer token over WebSocket.
 */
export type Transport = "fetch" | "websocket" | "eventsource";

/** The state of the connection. */
export type ConnectionState =
  | { state: "open"; transport: Transport; headers: Headers }
  /**
   * The connection was lost or could not be opened. `error` is undefined if it has ended cleanly, or because the
   * credentials have expired and are refreshed.
   */
  | { state: "waiting"; error?: Error; /** Milliseconds until the next attempt. */ delay: number };

type HeaderValues = Headers | Record<string, string>;

export interface Options {
  /** Ends the watch. The loop ends without an error. */
  signal?: AbortSignal;
  /** A label selector, such as `app=web,tier!=test`. It is added to the selector of the URL. */
  selector?: string;
  /** A field selector, such as `metadata.namespace=default`. It is added to the selector of the URL. */
  fieldSelector?: string;
  /**
   * The members to receive, such as `["metadata.labels", "status.phase"]` or
   * `["-metadata.managedFields"]`. The server sends no event for a change of other members. A
   * server that does not know projections sends whole objects. Reduced objects are for reading only.
   */
  fields?: string[];
  /**
   * The shortest time between two deliveries of a watch in milliseconds, up to 60,000. A MODIFIED
   * event may be missing if a later event of the same object follows, so do not derive a state from
   * the sequence of events. With 0, only a reader that lags misses states. By default every event is
   * delivered; so it is by a server that does not know this option.
   */
  conflate?: number;
  /**
   * Headers of each request, or a function that returns them. It is called before each request,
   * and with `refresh: true` after a 401; then it must return fresh credentials. If it throws, or
   * does not settle within `idleTimeout`, the request is retried after a delay; a WatchError of a
   * permanent code, such as `Forbidden`, ends the watch.
   */
  headers?: HeaderValues | ((context: { refresh: boolean }) => HeaderValues | Promise<HeaderValues>);
  /** Whether cookies are sent to other origins; see fetch. WebSocket always sends them. */
  credentials?: RequestCredentials;
  /** The transports, best first. By default `fetch`, `websocket` and `eventsource`, if they exist. */
  transports?: Transport[];
  /** Sends the requests. By default the fetch of the browser, and in Node.js one over its http module. */
  fetch?: typeof fetch;
  /** Parses JSON, for instance to keep large numbers. By default `JSON.parse`. */
  parse?: (text: string) => any;
  /**
   * The milliseconds of silence after which a connection is given up. The default is 150,000, two
   * and a half times the interval of bookmarks. The headers of a watch are awaited for 30,000 at
   * first, and twice as long after each failure. A negative value disables all of these limits.
   */
  idleTimeout?: number;
  /** The maximum number of characters of one event. The default is 16 Mi. */
  maxEventSize?: number;
  /** Called whenever the state of the connection changes. What it throws is reported like an uncaught error. */
  onState?: (state: ConnectionState) => void;
}

export interface WatchOptions extends Options {
  /** Start after this version, usually the one of a list. If undefined, start with the current state. */
  resourceVersion?: string;
  /**
   * The state that the reader has: the version of a SYNCED or BOOKMARK event, and the annotation
   * `listwatch.dev/state` of the last SYNCED event. The watch then begins with what has changed
   * since: ADDED for new and changed objects, DELETED for others, then SYNCED. If the server cannot
   * tell, RESET and the whole state come instead. The same happens after a 410, so a reader that
   * has no state yet passes `{}`. Initial events are delivered when all of them have arrived.
   */
  since?: { version?: string; state?: string };
  /** Whether BOOKMARK events are delivered. The default is false. */
  bookmarks?: boolean;
  /**
   * Whether the watch continues with the current state if the history is lost (410), or if three
   * streams in a row end at once without an event, because a proxy may hide the 410. The default
   * is true. If false, the loop ends with a WatchError of code `Expired`.
   */
  relist?: boolean;
  /**
   * If false, read one stream: the request has the parameters of the URL and no others, events are
   * delivered as they arrive, and the loop ends with the stream. The default is true.
   */
  reconnect?: boolean;
}

/**
 * Follows a collection. It reconnects with a growing random delay and resumes after the last event,
 * so that no change is missed or repeated. Failures that do not pass, such as 403, end the loop with
 * a WatchError.
 *
 *     for await (const { type, object } of watch("/flags")) console.log(type, object.metadata.name);
 *
 * While the loop body runs, fetch reads no further, so that a slow reader slows down the server.
 * To stop a loop that waits, abort the signal.
 *
 * @param url the URL of the collection; a relative one only in a page
 */
export function watch<T = KubernetesObject>(url: string | URL, options?: WatchOptions): AsyncGenerator<WatchEvent<T>, void, void>;

/** The objects of a collection at one moment, by key. */
export interface Snapshot<T = KubernetesObject> extends ReadonlyMap<string, T> {
  /**
   * - `connecting`: the first state has not arrived yet.
   * - `live`: the objects are current.
   * - `reconnecting`: the objects are those that the server sent last.
   * - `failed`: `error` does not pass, and the collection is no longer followed.
   * - `closed`: the collection is no longer followed.
   */
  readonly status: "connecting" | "live" | "reconnecting" | "failed" | "closed";
  /** The reason of the status; undefined if there is none. */
  readonly error?: Error;
}

export interface Collection<T = KubernetesObject> extends Snapshot<T> {
  /** Fulfilled when the first state is complete, and rejected if the collection is closed or fails before. */
  readonly ready: Promise<void>;
  /**
   * Calls the listener with a snapshot, now and after changes, once for all changes that arrive
   * together. It returns a function that unsubscribes. What a listener throws is reported like an
   * uncaught error, and stops neither the collection nor other listeners. This is the contract of Svelte's stores, and
   * with getSnapshot that of React's useSyncExternalStore.
   */
  readonly subscribe: (listener: (snapshot: Snapshot<T>) => void) => () => void;
  /** Returns a copy that never changes. It is the same one until something changes. */
  readonly getSnapshot: () => Snapshot<T>;
  /** Stops following. The objects remain. */
  readonly close: () => void;
}

export interface CollectionOptions<T = KubernetesObject> extends Options {
  /**
   * Keeps a copy of the objects in IndexedDB, under this name. A page that is loaded again shows
   * them at once, with the status `reconnecting`, and requests only what has changed since. Several
   * pages may use one copy. It is removed when the server answers 401 or 403; if several users share
   * a browser, the name must contain the user, because the copy is shown before the server is
   * asked. Secrets are not saved unless `secrets` is true.
   */
  persist?: string | { name: string; secrets?: boolean };
  /** Returns the key of an object. The default is `name`, or `namespace/name` if it has a namespace. */
  key?: (object: T) => string;
}

/**
 * Follows a collection and keeps its objects in a Map. When the history is lost, the old objects
 * remain visible until the new state is complete.
 */
export function collection<T = KubernetesObject>(url: string | URL, options?: CollectionOptions<T>): Collection<T>;

/** A collection of a union. */
export interface Part<T = KubernetesObject> extends Pick<Options, "selector" | "fieldSelector" | "fields">, Pick<CollectionOptions<T>, "key"> {
  /** The path of the collection, relative to the server's root, such as `/api/v1/nodes`. */
  url: string | URL;
}

/**
 * Follows several collections over one connection, of a server that serves unions at `url`, such as
 * `listwatch serve` at `/watch`. All of them are at the same version whenever a listener is called;
 * with `conflate`, some objects may be older for a moment. The first state, and any state or
 * difference after the history was lost, appears in all of them at once.
 *
 *     const [nodes, pods] = union("/watch", ["/api/v1/nodes", { url: "/api/v1/pods", selector: "app=web" }]);
 *
 * If one collection may not be read, all fail. Closing one of them does not close the others; the
 * connection is closed with the last one.
 */
export function union(
  url: string | URL, parts: (string | URL | Part<any>)[],
  options?: Omit<Options, "selector" | "fieldSelector" | "fields">,
): Collection<any>[];

export interface ObjectsOptions
  extends Pick<Options, "signal" | "headers" | "credentials" | "fetch" | "parse" | "idleTimeout"> {
  /**
   * Writes JSON. The default is `JSON.stringify`. An update writes the whole object, so if objects
   * have numbers beyond 2^53, set `parse` and `stringify` to functions that keep them.
   */
  stringify?: (value: any) => string;
  /**
   * The client recognizes the paths of Kubernetes by the end of the URL: `/api/VERSION/PLURAL` or
   * `/apis/GROUP/VERSION/PLURAL`. If your own handler has such a path and its objects have
   * namespaces, set `plainPaths`.
   */
  plainPaths?: boolean;
}

/** A version or a uid that an object must have. */
export interface Preconditions {
  resourceVersion?: string;
  uid?: string;
}

/**
 * The methods that read and write single objects. A key is `name` or `namespace/name`, as in a
 * Collection. Failures reject with a WatchError. A write that fails with `Unavailable` may have been
 * performed nevertheless, so it is not repeated.
 */
export interface Objects<T = KubernetesObject> {
  /** Reads the newest state. */
  readonly get: (key: string) => Promise<T>;
  /** Creates an object. If its key is taken, the error has code `AlreadyExists`. */
  readonly create: (object: T) => Promise<T>;
  /**
   * Reads the object, calls `change`, and writes the result. `change` modifies the object or returns
   * another one. If another writer was faster, all of this is done again, at most a hundred times,
   * so `change` may be called several times. If it modifies nothing, nothing is written.
   */
  readonly update: (key: string, change: (object: T) => T | void | Promise<T | void>) => Promise<T>;
  /**
   * Applies a patch, by default a JSON merge patch (RFC 7386): members of the patch replace those of
   * the object, and null removes them. If the patch has `metadata.resourceVersion`, the object must
   * have this version, otherwise the error has code `Conflict`. `type` is the media type of another
   * kind of patch. Servers without patches respond with 405, `Unsupported`.
   */
  readonly patch: (key: string, patch: object, type?: string) => Promise<T>;
  /**
   * Deletes an object and returns its last state, or undefined if the server does not send it. If the
   * object does not satisfy the preconditions, the error has code `Conflict`.
   */
  readonly delete: (key: string, preconditions?: Preconditions) => Promise<T | undefined>;
}

/**
 * Reads and writes the objects of a collection, at the same URL as `watch` and `collection`.
 *
 *     const flags = objects<Flag>("/flags");
 *     await flags.update("dark-mode", (flag) => { flag.spec.enabled = true; });
 */
export function objects<T = KubernetesObject>(url: string | URL, options?: ObjectsOptions): Objects<T>;

export interface PresenceOptions<T = KubernetesObject> extends ObjectsOptions {
  /**
   * The milliseconds between two renewals, by default 10,000. It should be at most a third of the TTL,
   * so that the object survives two failures. A request that gets no response within half of it, but
   * at least a second, has failed, unless idleTimeout is set.
   */
  every?: number;
  /** Called whenever the state changes. What it throws is reported like an uncaught error. */
  onState?: (state: PresenceState<T>) => void;
}

/** The state of a presence. */
export type PresenceState<T = KubernetesObject> =
  /** The object was created. */
  | { state: "present"; object: T }
  /** A request failed, and is repeated. The object may end meanwhile. */
  | { state: "waiting"; error: WatchError }
  /** The object had ended before it was renewed, because the page was hidden or offline. It is created again. */
  | { state: "lost"; error: WatchError }
  /**
   * The presence has ended: another page has replaced the object (`Conflict`), or the server refuses a
   * request, also with fresh `headers`.
   */
  | { state: "failed"; error: WatchError };

export interface Presence {
  /** Deletes the object and stops. */
  readonly close: () => Promise<void>;
}

/**
 * Keeps an object alive, in a collection whose server ends objects, such as `listwatch serve --ttl`:
 * it creates the object, renews it while the page is visible, and creates it again if it was lost.
 * Watchers see who is there: when the page is closed or hidden, the object ends after its TTL.
 *
 *     const me = presence("/users", { metadata: { name: "ada" }, spec: { page: "orders" } });
 *
 * It replaces an object of the same name, which an earlier page may have left; the earlier one then
 * fails with `Conflict`. Give each tab a name of its own if a user may have several. When `signal` is
 * aborted, the presence is closed.
 */
export function presence<T = KubernetesObject>(url: string | URL, object: T, options?: PresenceOptions<T>): Presence;

/** An error of a request. */
export class WatchError extends Error {
  /** The function `headers` may throw one. */
  constructor(code: WatchError["code"], message: string);
  readonly name: "WatchError";
  /**
   * What the caller can do. `Expired`: list again. `Unauthorized`, `Forbidden`, `NotFound`,
   * `Invalid`, `Unsupported`: change the request. `AlreadyExists`: an object has the key. `Conflict`:
   * another writer was faster, so read the object again. `Corrupt`: the server violates the protocol.
   * `NotYet`: the server has not reached the version. `Unavailable`, `TooSlow`, `Unknown`,
   * `NoContent`: try later.
   */
  readonly code:
    | "Expired" | "Unauthorized" | "Forbidden" | "NotFound" | "Invalid" | "Unsupported" | "Corrupt" | "NotYet"
    | "Unavailable" | "TooSlow" | "Unknown" | "NoContent" | "AlreadyExists" | "Conflict";
  /** The HTTP status that the server sent, or 0. */
  readonly status: number;
  /** Milliseconds that the server asked to wait, or 0. */
  readonly retryAfter: number;
  /** What the server sent: a Status of Kubernetes, or a text. */
  readonly body?: unknown;
}
