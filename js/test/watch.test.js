import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { collection, watch, WatchError } from "../listwatch.js";
import { abortable, event, json, object, script, status, stream, synced, take } from "./script.js";

beforeEach(() => (Math.random = () => 0)); // no waiting between attempts

test("a watch begins with the state and resumes after its last event", async () => {
  const server = script(
    stream([event("ADDED", "a", "3"), synced("5"), event("MODIFIED", "a", "6"), event("DELETED", "a", "7")], "break"),
    stream([event("DELETED", "a", "7"), event("ADDED", "b", "8")]),
  );
  assert.deepEqual(await take(5, server), ["ADDED a 3", "SYNCED 5", "MODIFIED a 6", "DELETED a 7", "ADDED b 8"]);
  assert.equal(server.requests[0].params.sendInitialEvents, "true");
  assert.equal(server.requests[1].params.resourceVersion, "6", "more events of version 7 might follow");
});

test("a 410 resets the state", async () => {
  const gone = { type: "ERROR", object: status(410) };
  const server = script(stream([event("ADDED", "a", "8"), gone]), stream([event("ADDED", "b", "9"), synced("9")]));
  assert.deepEqual(await take(4, server, { resourceVersion: "7" }), ["ADDED a 8", "RESET", "ADDED b 9", "SYNCED 9"]);
});

test("without relist a 410 is an error", async () => {
  await assert.rejects(take(1, script(json(status(410), { status: 410 })), { resourceVersion: "7", relist: false }), { code: "Expired", status: 410 });
});

test("a state that was cut short is sent again", async () => {
  const server = script(stream([event("ADDED", "a", "3")], "break"), stream([event("ADDED", "b", "4"), synced("5")]));
  assert.deepEqual(await take(4, server), ["ADDED a 3", "RESET", "ADDED b 4", "SYNCED 5"]);
});

test("a server without initial events is listed", async () => {
  const list = { kind: "ThingList", apiVersion: "v1", metadata: { resourceVersion: "5" }, items: [object("a", "3")] };
  const server = script(json(status(422), { status: 422 }), json(list), stream([event("ADDED", "b", "6")]));
  assert.deepEqual(await take(3, server), ["ADDED a 3", "SYNCED 5", "ADDED b 6"]);
  assert.deepEqual(server.requests[1].params, {});
  assert.equal(server.requests[2].params.resourceVersion, "5");
});

test("passing failures are retried, others end the loop", async () => {
  const server = script(new TypeError("refused"), json(status(503), { status: 503 }), stream([event("ADDED", "a", "8")]));
  assert.deepEqual(await take(1, server, { resourceVersion: "7" }), ["ADDED a 8"]);
  for (const code of [400, 403, 404]) {
    await assert.rejects(take(1, script(json(status(code), { status: code })), { resourceVersion: "7" }), { status: code, message: /status/ });
  }
  assert.deepEqual(await take(1, script(new Response(null, { status: 204 })), { resourceVersion: "7" }), [], "204 ends the watch for good");
});

const long = { selector: `app in (${"web,".repeat(2000)}web)`, resourceVersion: "7" };
const methods = (server) => server.requests.map(({ method }) => method).join(" ");

test("a long selector is sent in the body of a QUERY", async () => {
  const response = stream([event("ADDED", "a", "8")]);
  response.headers.set("Accept-Query", "application/x-www-form-urlencoded");
  const server = script(response);
  assert.deepEqual(await take(1, server, long), ["ADDED a 8"]);
  const [{ method, body, params, headers }] = server.requests;
  assert.deepEqual([method, params, headers["Content-Type"]], ["QUERY", {}, "application/x-www-form-urlencoded"]);
  assert.equal(new URLSearchParams(body).get("labelSelector"), long.selector);
  assert.equal(new URLSearchParams(body).get("resourceVersion"), "7");
});

test("a server that refuses QUERY gets GETs from then on", async () => {
  const redirect = new Response(null, { status: 303, headers: { Location: "/other" } });
  const ignored = json({ metadata: {}, items: [] });
  const refusals = [405, 501, 400, 403, 415].map((code) => json(status(code), { status: code }));
  for (const refusal of [...refusals, redirect, ignored, new TypeError("Failed to fetch")]) {
    const server = script(refusal, stream([event("ADDED", "a", "8")], "end"), stream([event("ADDED", "b", "9")]));
    assert.deepEqual(await take(2, server, long), ["ADDED a 8", "ADDED b 9"]);
    assert.equal(methods(server), "QUERY GET GET");
    assert.equal(server.requests[1].params.labelSelector, long.selector);
  }
});

test("a QUERY that fails for another reason is not repeated as a GET", async () => {
  const answers = stream([event("ADDED", "a", "8")]);
  answers.headers.set("Accept-Query", "application/x-www-form-urlencoded");
  const server = script(json(status(503), { status: 503 }), answers);
  assert.deepEqual(await take(1, server, long), ["ADDED a 8"]);
  assert.equal(methods(server), "QUERY QUERY");
});

test("a URL that is too long hides no broken connection", async () => {
  const answers = stream([event("ADDED", "a", "8")]);
  answers.headers.set("Accept-Query", "application/x-www-form-urlencoded");
  const server = script(new TypeError("Failed to fetch"), json(status(414), { status: 414 }), answers);
  assert.deepEqual(await take(1, server, long), ["ADDED a 8"]);
  assert.equal(methods(server), "QUERY GET QUERY");
});

test("a 401 requests fresh credentials once", async () => {
  const calls = [];
  const headers = ({ refresh }) => (calls.push(refresh), { Authorization: `Bearer ${calls.length}` });
  const refused = () => json(status(401), { status: 401 });
  const server = script(refused(), stream([event("ADDED", "a", "8")]));
  assert.deepEqual(await take(1, server, { resourceVersion: "7", headers }), ["ADDED a 8"]);
  assert.deepEqual(calls, [false, true]);
  assert.equal(server.requests[1].headers.authorization, "Bearer 2");
  await assert.rejects(take(1, script(refused(), refused()), { resourceVersion: "7", headers }), { code: "Unauthorized" });
});

test("credentials that expire during a quiet stream are refreshed each time, without backoff and without an error", async () => {
  Math.random = () => 0.001;
  const delays = [], errors = [];
  const onState = ({ state, delay, error }) => state === "waiting" && (delays.push(delay), errors.push(error));
  const expired = () => stream([{ type: "ERROR", object: status(401) }]);
  const calls = [];
  const headers = ({ refresh }) => (calls.push(refresh), {});
  const slow = async () => (await new Promise((resolve) => setTimeout(resolve, 1100)), null);
  const responses = [expired(), null, null];
  const server = script();
  server.fetch = async (url, { signal }) => {
    const next = responses.shift();
    if (next) return abortable(next, signal);
    // With highWaterMark 0, the time starts when the client reads, and so after it has opened the stream.
    const late = new ReadableStream({ async pull(c) { await slow(); c.enqueue(new TextEncoder().encode(JSON.stringify(responses.length ? { type: "ERROR", object: status(401) } : event("ADDED", "a", "8")))); c.close(); } }, { highWaterMark: 0 });
    return new Response(late, { headers: { "Content-Type": "application/json" } });
  };
  assert.deepEqual(await take(1, server, { resourceVersion: "7", headers, onState }), ["ADDED a 8"]);
  assert.deepEqual(calls, [false, true, true]);
  assert.equal(delays[1], delays[0]);
  assert.deepEqual(errors, [undefined, undefined]);
});

test("an error of the function for headers is retried, and the refresh with it", async () => {
  const server = script(json(status(401), { status: 401 }), stream([event("ADDED", "a", "6")]));
  const calls = [], states = [];
  const headers = async ({ refresh }) => {
    calls.push(refresh);
    if (calls.length === 2) throw new TypeError("Failed to fetch");
    return { Authorization: "Bearer token" };
  };
  const onState = (s) => states.push(s);
  assert.deepEqual(await take(1, server, { resourceVersion: "5", headers, onState }), ["ADDED a 6"]);
  assert.deepEqual(calls, [false, true, true]);
  const { error } = states.find((s) => s.state === "waiting");
  assert.equal(error.code, "Unavailable");
  assert.match(error.message, /headers failed: Failed to fetch/);
});

test("a WatchError of the function for headers ends the watch", async () => {
  const headers = () => {
    throw new WatchError("Forbidden", "signed out");
  };
  await assert.rejects(take(1, script(), { headers }), { code: "Forbidden" });
});

test("a silent connection is given up", async () => {
  const server = script(stream([]), stream([event("ADDED", "a", "8")]));
  assert.deepEqual(await take(1, server, { resourceVersion: "7", idleTimeout: 50 }), ["ADDED a 8"]);
  assert.ok(server.requests[0].signal.aborted);
});

test("selectors are added to those of the URL, and fields replace them", async () => {
  const server = script(stream([event("ADDED", "a", "8")]));
  for await (const _ of watch("http://server/things?labelSelector=a%3D1&fields=z&limit=5&x=y", { ...server, resourceVersion: "7", selector: "b=2", fieldSelector: "c=3", fields: ["d", "-e.f"], conflate: 500 })) break;
  assert.deepEqual(server.requests[0].params, {
    labelSelector: "a=1,b=2", fieldSelector: "c=3", fields: "d,-e.f", conflate: "500ms", x: "y", watch: "true", allowWatchBookmarks: "true", resourceVersion: "7",
  });
  assert.ok(server.requests[0].signal.aborted, "break closes the stream");
});

test("a collection keeps its objects until the new state is complete", async () => {
  const gone = { type: "ERROR", object: status(410) };
  const server = script(stream([event("ADDED", "a", "3"), event("ADDED", "b", "4"), synced("5"), gone]), stream([event("ADDED", "b", "6")]));
  const things = collection("http://server/things", server);
  const seen = [];
  const unsubscribe = things.subscribe((snapshot) => seen.push(`${snapshot.status}: ${[...snapshot.keys()]}`));
  await things.ready;
  assert.deepEqual([...things.keys()], ["a", "b"]);
  while (server.requests.length < 2) await new Promise((resolve) => setTimeout(resolve, 10));
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.deepEqual([...things.keys()], ["a", "b"], "the second state is not complete");
  assert.equal(seen[0], "connecting: ");
  assert.ok(seen.every((line) => line === "connecting: " || line.endsWith(": a,b")), seen.join());
  unsubscribe();
  things.close();
});

test("a snapshot changes only with the collection", async () => {
  let send;
  const body = new ReadableStream({ start: (c) => (send = (e) => c.enqueue(new TextEncoder().encode(JSON.stringify(e)))) });
  const server = script(new Response(body, { headers: { "Content-Type": "application/json" } }));
  const things = collection("http://server/things", server);
  send(event("ADDED", "a", "3", { value: 1 }));
  send(synced("5"));
  await things.ready;
  const before = things.getSnapshot();
  assert.equal(before, things.getSnapshot());
  const changed = new Promise((resolve) => things.subscribe((s) => s.get("a").value === 2 && resolve(s)));
  send(event("MODIFIED", "a", "6", { value: 2 }));
  const after = await changed;
  assert.equal(after, things.getSnapshot());
  assert.equal(before.get("a").value, 1);
  things.close();
});

test("a collection reports a failure that does not pass", async () => {
  const things = collection("http://server/things", script(json(status(403), { status: 403 })));
  await assert.rejects(things.ready, { code: "Forbidden" });
  assert.equal(things.status, "failed");
  assert.equal(things.getSnapshot().error.status, 403);
});

test("no event is delivered after the signal is aborted", async () => {
  const list = { metadata: { resourceVersion: "5" }, items: [object("a", "3"), object("b", "4")] };
  const streamed = () => script(stream([event("ADDED", "a", "3"), event("ADDED", "b", "4"), synced("5")]));
  for (const server of [streamed(), script(json(status(422), { status: 422 }), json(list))]) {
    assert.deepEqual(await take(1, server), ["ADDED a 3"]);
  }
  assert.deepEqual(await take(1, streamed(), { reconnect: false }), ["ADDED a 3"]);
});

test("a state that is too large for a WebSocket is listed", async () => {
  const text = "x".repeat(1 << 20);
  globalThis.WebSocket = class {
    constructor() {
      queueMicrotask(() => {
        this.onopen();
        for (let i = 1; i < 20; i++) this.onmessage({ data: JSON.stringify(event("ADDED", `a${i}`, `${i}`, { text })) });
      });
    }
    close() {}
  };
  try {
    const server = script(json({ metadata: { resourceVersion: "25" }, items: [object("a", "3")] }));
    const events = [];
    const controller = new AbortController();
    for await (const { type } of watch("http://server/things", { ...server, transports: ["websocket"], signal: controller.signal })) {
      events.push(type);
      if (type === "SYNCED" || events.length === 60) controller.abort();
    }
    assert.deepEqual(events.slice(-3), ["RESET", "ADDED", "SYNCED"]);
    assert.deepEqual(server.requests[0].params, {});
  } finally {
    delete globalThis.WebSocket;
  }
});

/** A bookmark that ends initial events, with the text that identifies the state and, for a difference, its start. */
const ends = (version, state, since) => event("BOOKMARK", "", version, {
  metadata: {
    resourceVersion: version,
    annotations: { "k8s.io/initial-events-end": "true", "listwatch.dev/state": state, ...(since && { "listwatch.dev/initial-events-since": since }) },
  },
});
const gone = () => stream([{ type: "ERROR", object: status(410) }]);

test("after a 410, a reader with since gets the difference", async () => {
  const server = script(
    stream([event("ADDED", "a", "3"), ends("5", "S"), event("ADDED", "b", "7"), { type: "ERROR", object: status(410) }]),
    stream([event("ADDED", "a", "8"), event("DELETED", "b", "9"), ends("9", "S", "5"), event("ADDED", "c", "10")]),
  );
  const want = ["ADDED a 3", "SYNCED 5", "ADDED b 7", "ADDED a 8", "DELETED b 9", "SYNCED 9", "ADDED c 10"];
  assert.deepEqual(await take(7, server, { since: {} }), want);
  const { initialEventsSince, initialEventsState, sendInitialEvents } = server.requests[1].params;
  assert.deepEqual([initialEventsSince, initialEventsState, sendInitialEvents], ["5", "S", "true"], "more events of version 7 might follow");
});

test("initial events without the mark of a difference are a whole state", async () => {
  const since = { version: "5", state: "S" };
  const server = script(stream([event("ADDED", "a", "8"), ends("9", "T"), { type: "ERROR", object: status(410) }]), stream([ends("10", "T", "9")]));
  assert.deepEqual(await take(4, server, { since }), ["RESET", "ADDED a 8", "SYNCED 9", "SYNCED 10"]);
  assert.equal(server.requests[0].params.initialEventsSince, "5");
  const other = script(stream([event("ADDED", "a", "8"), ends("9", "S", "4")]));
  assert.deepEqual(await take(3, other, { since }), ["RESET", "ADDED a 8", "SYNCED 9"], "a difference since another version");
});

test("a difference that was cut short is requested again, and nothing of it is delivered", async () => {
  const server = script(stream([event("ADDED", "a", "8")], "end"), stream([event("ADDED", "a", "9"), ends("9", "S", "5")]));
  assert.deepEqual(await take(2, server, { since: { version: "5", state: "S" } }), ["ADDED a 9", "SYNCED 9"]);
  assert.equal(server.requests[1].params.initialEventsSince, "5");
});

test("after invalid events or a list, the whole state is requested", async () => {
  const corrupt = stream([event("ADDED", "a", "3"), ends("5", "S"), event("ADDED", "b", "4")]);
  const server = script(corrupt, gone(), stream([ends("9", "S")]));
  assert.deepEqual(await take(4, server, { since: {} }), ["ADDED a 3", "SYNCED 5", "RESET", "SYNCED 9"]);
  assert.equal(server.requests[2].params.initialEventsSince, undefined);
  const list = { kind: "ThingList", metadata: { resourceVersion: "5" }, items: [] };
  const listed = script(json(status(422), { status: 422 }), json(list), gone(), json(list), stream([event("ADDED", "a", "6")]));
  assert.deepEqual(await take(4, listed, { since: {} }), ["SYNCED 5", "RESET", "SYNCED 5", "ADDED a 6"]);
});

test("without since, no difference is requested", async () => {
  const server = script(stream([ends("5", "S"), { type: "ERROR", object: status(410) }]), stream([ends("6", "S")]));
  assert.deepEqual(await take(3, server), ["SYNCED 5", "RESET", "SYNCED 6"]);
  assert.equal(server.requests[1].params.initialEventsSince, undefined);
});

test("a collection applies a difference, with any key", async () => {
  const server = script(
    stream([event("ADDED", "a", "3", { uid: "1" }), event("ADDED", "b", "4", { uid: "2" }), ends("5", "S"), { type: "ERROR", object: status(410) }]),
    stream([event("ADDED", "c", "8", { uid: "3" }), event("DELETED", "b", "9"), ends("9", "S", "5")]),
  );
  const things = collection("http://server/things", { ...server, key: ({ uid }) => uid });
  const seen = [];
  await new Promise((resolve) => things.subscribe((snapshot) => {
    if (snapshot.status === "live") seen.push([...snapshot.keys()].join());
    if (snapshot.has("3")) resolve();
  }));
  things.close();
  assert.equal(seen.at(-1), "1,3");
  assert.ok(seen.every((keys) => keys === "1,2" || keys === "1,3"), `no state between the two is visible: ${seen}`);
});
