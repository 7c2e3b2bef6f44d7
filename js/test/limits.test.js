// Whatever the functions of a page, its browser and the network do: a watch ends, resumes or reports.
import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { collection, objects, watch } from "../listwatch.js";
import { Transports } from "../src/transports.js";
import { abortable, event, json, object, script, status, stream, synced, take } from "./script.js";

beforeEach(() => (Math.random = () => 0)); // no waiting between attempts

const never = new Promise(() => {});
const tick = (milliseconds = 0) => new Promise((resolve) => setTimeout(resolve, milliseconds));
/** Lets everything happen that waits for no timer. */
const steps = async () => {
  for (let i = 0; i < 20; i++) await setImmediate();
};
const answers = () => stream([event("ADDED", "a", "8")]);

/** Returns the messages of the errors that f leads to and that nothing catches. */
async function uncaught(f) {
  const thrown = [], own = globalThis.reportError;
  globalThis.reportError = ({ message }) => thrown.push(message);
  try {
    await f();
    await tick(20);
  } finally {
    globalThis.reportError = own;
  }
  return thrown;
}

test("a function for headers that never settles is called again", async () => {
  const states = [];
  const headers = () => (states.length ? {} : never);
  const options = { headers, resourceVersion: "7", idleTimeout: 200, onState: (state) => states.push(state) };
  const server = script(answers());
  assert.deepEqual(await take(1, server, options), ["ADDED a 8"]);
  assert.equal(server.requests.length, 1);
  assert.equal(states[0].state, "waiting");
  assert.match(states[0].error.message, /the function headers did not settle for 0.2 s/);
});

test("a write whose headers come too late is not sent", async () => {
  let settle;
  const server = script();
  const headers = () => new Promise((resolve) => (settle = resolve));
  const things = objects("http://server/things", { ...server, headers, idleTimeout: 30 });
  await assert.rejects(things.create(object("a")), { code: "Unavailable", message: /headers did not settle/ });
  settle({});
  await tick();
  assert.equal(server.requests.length, 0);
});

test("an abort ends a watch that waits for anything", async () => {
  const body = () => new Response(new ReadableStream(), { headers: { "Content-Type": "application/json" } });
  const refusal = () => new Response(new ReadableStream(), { status: 503 });
  const waits = [{ headers: () => never }, { fetch: () => never }, { fetch: async () => body() }, { fetch: async () => refusal() }];
  for (const options of waits) {
    for (const reconnect of [true, false]) {
      const controller = new AbortController();
      setTimeout(() => controller.abort(), 20);
      for await (const _ of watch("http://server/things", { transports: ["fetch"], fetch: async () => body(), ...options, reconnect, signal: controller.signal }));
    }
  }
});

test("a fetch that ignores its signal is given up, and what it returns later is closed", async () => {
  let late, cancelled = false;
  const response = new Response(new ReadableStream({ cancel: () => void (cancelled = true) }), { headers: { "Content-Type": "application/json" } });
  const server = script(answers());
  const second = server.fetch;
  server.fetch = (...request) => (late ? second(...request) : new Promise((resolve) => (late = () => resolve(response))));
  assert.deepEqual(await take(1, server, { resourceVersion: "7", idleTimeout: 200 }), ["ADDED a 8"]);
  late();
  await tick();
  assert.ok(cancelled);
});

test("a body that ignores the signal is given up and cancelled", async () => {
  let cancelled = false;
  const server = script(answers());
  const second = server.fetch;
  let first = new Response(new ReadableStream({ cancel: () => void (cancelled = true) }), { headers: { "Content-Type": "application/json" } });
  server.fetch = async (...request) => {
    const response = first ?? (await second(...request));
    first = undefined;
    return response;
  };
  assert.deepEqual(await take(1, server, { resourceVersion: "7", idleTimeout: 200 }), ["ADDED a 8"]);
  assert.ok(cancelled);
});

test("whatever a fetch returns or throws, the watch goes on or ends with a WatchError", async () => {
  const fails = (reason) => () => Promise.reject(reason);
  const odd = [() => {}, () => ({}), fails("text"), fails(), () => json({}, { status: 302, headers: { Location: "http://[" } })];
  for (const response of odd) {
    const server = script(answers());
    const second = server.fetch;
    let calls = 0;
    server.fetch = (...request) => (calls++ ? second(...request) : response());
    const headers = { "X-User": "me" }; // redirects are visible
    assert.deepEqual(await take(1, server, { resourceVersion: "7", headers }), ["ADDED a 8"]);
  }
});

test("the body of an error that does not end hides no error", { timeout: 20_000 }, async () => {
  const body = new ReadableStream({ start: (c) => c.enqueue(new TextEncoder().encode("signed out")) });
  const server = script();
  server.fetch = async () => new Response(body, { status: 403 });
  await assert.rejects(take(1, server, {}), { code: "Forbidden", message: /signed out/ });
});

test("a transport that cannot be created is one that fails", async () => {
  globalThis.WebSocket = class { constructor() { throw new DOMException("forbidden by the page's policy", "SecurityError"); } };
  globalThis.EventSource = class { constructor() { throw new TypeError("no"); } };
  try {
    const states = [];
    const server = script(new TypeError("Failed to fetch"), answers());
    delete server.transports;
    assert.deepEqual(await take(1, server, { resourceVersion: "7", onState: (s) => states.push(s.error?.message) }), ["ADDED a 8"]);
    assert.match(states[0], /Failed to fetch/);
  } finally {
    delete globalThis.WebSocket;
    delete globalThis.EventSource;
  }
});

test("statuses by which a server asks to try again are retried, others end the watch", async () => {
  const headers = { "Content-Type": "text/html" };
  for (const code of [408, 421, 425, 429, 500, 502, 503, 504, 507, 508, 511, 520, 530, 599]) {
    assert.deepEqual(await take(1, script(new Response("<h1>no</h1>", { status: code, headers }), answers()), { resourceVersion: "7" }), ["ADDED a 8"]);
  }
  for (const code of [400, 402, 403, 404, 405, 413, 414, 422, 451, 501, 505]) {
    await assert.rejects(take(1, script(new Response("", { status: code })), { resourceVersion: "7" }), { status: code });
  }
});

test("three streams that end at once lead to the state", async () => {
  const states = [];
  const end = () => stream([], "end");
  const onState = ({ state, error }) => state === "waiting" && states.push(error?.code);
  const server = script(end(), end(), end(), stream([event("ADDED", "b", "9"), synced("9")]));
  assert.deepEqual(await take(3, server, { resourceVersion: "7", onState }), ["RESET", "ADDED b 9", "SYNCED 9"]);
  const { resourceVersion, sendInitialEvents } = server.requests[3].params;
  assert.deepEqual([resourceVersion, sendInitialEvents], [undefined, "true"]);
  assert.deepEqual(states, [undefined, undefined, undefined]);

  const held = script(stream([event("ADDED", "a", "3"), synced("5")], "end"), end(), end(), end(), stream([event("ADDED", "b", "9"), synced("9")]));
  assert.deepEqual(await take(5, held), ["ADDED a 3", "SYNCED 5", "RESET", "ADDED b 9", "SYNCED 9"]);

  const live = stream([event("MODIFIED", "a", "8")], "end");
  const busy = script(end(), end(), live, end(), end(), stream([event("ADDED", "b", "9")]));
  assert.deepEqual(await take(2, busy, { resourceVersion: "7" }), ["MODIFIED a 8", "ADDED b 9"], "an event shows that the version is known");
  await assert.rejects(take(1, script(end(), end(), end()), { resourceVersion: "7", relist: false }), { code: "Expired", message: /version 7 ended at once/ });
});

test("a state without an end is listed, even if changes follow it", async () => {
  const list = { kind: "ThingList", apiVersion: "v1", metadata: { resourceVersion: "50" }, items: [object("a", "49")] };
  let version = 7;
  const changing = new ReadableStream({
    async pull(c) {
      await tick(20);
      c.enqueue(new TextEncoder().encode(JSON.stringify(event("MODIFIED", "a", `${++version}`))));
    },
  });
  const endless = new Response(changing, { headers: { "Content-Type": "application/json" } });
  const server = script(endless, json(list), stream([event("ADDED", "b", "51")]));
  assert.deepEqual(await take(3, server, { since: {}, idleTimeout: 150 }), ["ADDED a 49", "SYNCED 50", "ADDED b 51"]);
});

test("a state that is refused in the stream is listed", async () => {
  const list = { kind: "ThingList", apiVersion: "v1", metadata: { resourceVersion: "50" }, items: [object("a", "49")] };
  const refusal = { type: "ERROR", object: { kind: "Status", status: "Failure", reason: "InternalError", code: 500 } };
  const server = script(stream([refusal]), json(list), stream([event("ADDED", "b", "51")]));
  assert.deepEqual(await take(3, server, { since: {} }), ["ADDED a 49", "SYNCED 50", "ADDED b 51"]);
});

test("a reader that is slow does not make the initial events too late", async () => {
  const server = script(stream([event("ADDED", "a", "3"), event("ADDED", "b", "4"), synced("5")]));
  const seen = [];
  for await (const { type } of watch("http://server/things", { ...server, idleTimeout: 1000 })) {
    seen.push(type);
    await tick(600); // twice
    if (type === "SYNCED") break;
  }
  assert.deepEqual(seen, ["ADDED", "ADDED", "SYNCED"]);
});

test("a listener that throws stops nothing else", async () => {
  const sizes = [], states = [];
  const server = script(stream([event("ADDED", "a", "3"), synced("5")]));
  const bug = (text) => {
    throw new Error(text);
  };
  const errors = await uncaught(async () => {
    const onState = ({ state }) => states.push(state) && bug("state");
    const things = collection("http://server/things", { ...server, onState });
    const unsubscribe = things.subscribe(({ size }) => size === 1 && bug("listener"));
    things.subscribe(({ size }) => sizes.push(size));
    await things.ready;
    await tick(20);
    assert.equal(things.status, "live");
    unsubscribe();
    things.close();
    const late = collection("http://server/things", { ...script(), signal: AbortSignal.abort() });
    assert.equal(typeof late.subscribe(() => bug("at once")), "function");
  });
  assert.deepEqual([sizes.at(-1), states], [1, ["open"]]);
  assert.deepEqual([...new Set(errors)].sort(), ["at once", "listener", "state"]);
});

test("a database that does not answer delays a collection, but not for long", async () => {
  globalThis.indexedDB = { open: () => new EventTarget() };
  try {
    const things = collection("http://server/things", { ...script(stream([event("ADDED", "a", "3"), synced("5")])), persist: "things" });
    await things.ready;
    assert.deepEqual([...things.keys()], ["a"]);
    things.close();

    mock.timers.enable({ apis: ["setTimeout"] }); // the limit never passes
    const closed = collection("http://server/things", { ...script(), persist: "things" });
    await steps();
    closed.close();
    await assert.rejects(closed.ready, /was closed/);
  } finally {
    delete globalThis.indexedDB;
  }
});

/** A page that can be hidden, shown and online again. */
class Page extends EventTarget {
  hidden = false;
  constructor() {
    super();
    globalThis.document = this;
    globalThis.addEventListener = this.addEventListener.bind(this);
  }
  static leave() {
    delete globalThis.document;
    delete globalThis.addEventListener;
  }
}

afterEach(() => {
  Page.leave();
  mock.timers.reset();
});

test("a page that is online again ends a delay, unless the server has asked for it", async () => {
  mock.timers.enable({ apis: ["setTimeout"] }); // no delay ends by itself
  const page = new Page();
  const online = async ({ state }) => {
    if (state !== "waiting") return;
    await steps();
    page.dispatchEvent(new Event("online"));
  };
  assert.deepEqual(await take(1, script(new TypeError("no network"), answers()), { resourceVersion: "7", onState: online }), ["ADDED a 8"]);

  const server = script(json(status(503), { status: 503, headers: { "Retry-After": "1" } }), answers());
  const done = take(1, server, { resourceVersion: "7", onState: online });
  await steps();
  await steps();
  assert.equal(server.requests.length, 1);
  mock.timers.tick(1000);
  assert.deepEqual(await done, ["ADDED a 8"]);
});

test("a page that is visible again gives up a connection that was silent", async () => {
  mock.timers.enable({ apis: ["Date"] });
  const page = new Page();
  const states = [];
  const server = script(stream([event("ADDED", "a", "8")]), stream([event("ADDED", "b", "9")]));
  const controller = new AbortController();
  const seen = [];
  const show = async (milliseconds, hidden = false) => {
    await tick(5);
    mock.timers.tick(milliseconds);
    page.hidden = hidden;
    page.dispatchEvent(new Event("visibilitychange"));
    await tick(5);
    return server.requests.length;
  };
  const onState = ({ state }) => states.push(state);
  for await (const { object } of watch("http://server/things", { ...server, resourceVersion: "7", onState, signal: controller.signal })) {
    seen.push(object.metadata.name);
    if (seen.length === 1) {
      (async () => {
        assert.equal(await show(20_000), 1, "20 s of silence are usual");
        assert.equal(await show(20_000, true), 1, "hidden");
        assert.equal(await show(0), 2);
      })().catch((error) => controller.abort(seen.push(error.message)));
    } else controller.abort();
  }
  assert.deepEqual([seen, states], [["a", "b"], ["open", "open"]]);
  assert.equal(server.requests[1].params.resourceVersion, "7");
});

test("two streams that a waking page gives up do not demote their transport", async () => {
  globalThis.WebSocket = class {};
  try {
    const { signal } = new AbortController();
    const request = { url: new URL("http://server/"), headers: {}, signal, maxEventSize: 100, onActivity() {}, fetch: async () => json({}) };
    const transports = new Transports(request);
    for (let i = 0; i < 3; i++) {
      const { candidate } = await transports.open(request);
      assert.equal(candidate.name, "fetch");
      transports.ended(candidate, { error: { woke: true }, received: 0, lived: 60_000 });
    }
  } finally {
    delete globalThis.WebSocket;
  }
});

test("headers are awaited for 30 s, and longer after each failure", async () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const waited = [];
  let started = 0, now = 0;
  const server = script();
  server.fetch = () => {
    started = now;
    return never;
  };
  const controller = new AbortController();
  const onState = ({ error }) => {
    waited.push((now - started) / 1000);
    assert.equal(error.idle, true);
    if (waited.length === 5) controller.abort();
  };
  const done = (async () => {
    for await (const _ of watch("http://server/things", { ...server, resourceVersion: "7", onState, signal: controller.signal }));
  })();
  for (; !controller.signal.aborted; now += 1000) {
    for (let i = 0; i < 50; i++) await Promise.resolve();
    mock.timers.tick(1000);
  }
  await done;
  assert.deepEqual(waited.map((seconds) => Math.round(seconds / 10) * 10), [30, 60, 120, 150, 150]);
});
