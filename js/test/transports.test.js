import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { Backoff } from "../src/backoff.js";
import { parseRetryAfter, statusError } from "../src/errors.js";
import { parseEvent } from "../src/events.js";
import { Guard } from "../src/guard.js";
import { Transports } from "../src/transports.js";

/** A WebSocket that is opened at once, or refused. */
class FakeWebSocket {
  static refuse = false;
  static opened = [];
  constructor(url, protocols) {
    FakeWebSocket.opened.push({ url: String(url), protocols });
    queueMicrotask(() => (FakeWebSocket.refuse ? this.onclose({ code: 1006, reason: "" }) : this.onopen()));
    FakeWebSocket.last = this;
  }
  close() {}
}

beforeEach(() => {
  globalThis.WebSocket = FakeWebSocket;
  FakeWebSocket.refuse = false;
  FakeWebSocket.opened = [];
});
afterEach(() => delete globalThis.WebSocket);

const ok = () => new Response("{}", { headers: { "Content-Type": "application/json" } });
const refused = (status) => () => new Response("", { status });
const broken = () => { throw new TypeError("network error"); };

/** Opens a stream with transports whose fetch calls respond, and returns the name of the transport. */
async function open(transports, respond, headers = {}) {
  const { signal } = new AbortController();
  const stream = await transports.open({ url: new URL("https://server/things?watch=1"), headers, signal, maxEventSize: 100, onActivity() {}, fetch: async () => respond() });
  return stream.candidate.name;
}

test("another transport is used if fetch may be the reason", async () => {
  for (const respond of [broken, refused(426), refused(501)]) {
    const transports = new Transports({ fetch: ok });
    assert.equal(await open(transports, respond), "websocket");
    assert.equal(await open(transports, ok), "websocket", "fetch is tried last for ten minutes");
  }
  assert.equal(FakeWebSocket.opened[0].url, "wss://server/things?watch=1");
});

test("a refused request is no failure of the transport", async () => {
  for (const status of [400, 401, 403, 404, 410, 503]) {
    await assert.rejects(open(new Transports({ fetch: ok }), refused(status)), { status });
  }
  assert.deepEqual(FakeWebSocket.opened, []);
});

test("if all transports fail, none is demoted", async () => {
  FakeWebSocket.refuse = true;
  const transports = new Transports({ fetch: ok });
  await assert.rejects(open(transports, broken), { code: "Unavailable", message: /network error/ });
  assert.equal(await open(transports, ok), "fetch");
});

test("two streams without an event demote a transport", async () => {
  const transports = new Transports({ fetch: ok });
  const stream = await transports.open({ url: "http://server/", headers: {}, signal: new AbortController().signal, fetch: async () => ok() });
  const quiet = { error: new Error("idle"), received: 0, lived: 150_000 };
  transports.ended(stream.candidate, quiet);
  assert.equal(await open(transports, ok), "fetch");
  transports.ended(stream.candidate, quiet);
  assert.equal(await open(transports, ok), "websocket");
});

test("only a bearer token goes over a WebSocket", async () => {
  const transports = new Transports({ fetch: ok, transports: ["websocket"] });
  assert.equal(await open(transports, ok, { authorization: "Bearer s>?~e" }), "websocket");
  assert.deepEqual(FakeWebSocket.opened[0].protocols, ["listwatch.v1.json", "base64url.bearer.authorization.k8s.io.cz4_fmU"]);
  for (const headers of [{ authorization: "Basic x" }, { "x-user": "a" }]) {
    await assert.rejects(open(transports, ok, headers), { code: "Unsupported" });
  }
});

test("an unread WebSocket is closed before it fills the memory", async () => {
  const transports = new Transports({ transports: ["websocket"] });
  const stream = await transports.open({ url: "http://server/", headers: {}, signal: new AbortController().signal, maxEventSize: 1 << 21 });
  const data = JSON.stringify({ text: "x".repeat(1 << 20) });
  let sent = 0;
  for (let isOpen = true; isOpen && sent < 100; sent++) {
    FakeWebSocket.last.close = () => (isOpen = false);
    FakeWebSocket.last.onmessage({ data });
  }
  assert.ok(sent > 10 && sent < 20, `${sent} messages of 1 Mi characters`);
  for (let i = 0; i < sent; i++) assert.equal((await stream.read()).length, data.length);
  await assert.rejects(stream.read(), { code: "TooSlow" });
});

test("an unknown transport is refused", () => {
  assert.throws(() => new Transports({ transports: ["carrier-pigeon"] }), /is not one of fetch,websocket,eventsource/);
});

test("a transport that never responds is tried last", async () => {
  const transports = new Transports({ fetch: ok });
  const guard = new Guard(new AbortController().signal, 20);
  const fetch = (url, { signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  const request = { url: new URL("https://server/things?watch=1"), headers: {}, signal: guard.signal, fetch };
  await assert.rejects(guard.wait(transports.open(request)), { code: "Unavailable", idle: true });
  assert.equal(await open(transports, ok), "websocket");
});

test("an aborted request opens no connection", async () => {
  let sources = 0;
  globalThis.EventSource = class { constructor() { sources++; } };
  try {
    for (const name of ["websocket", "eventsource"]) {
      const request = { url: "http://server/", headers: {}, signal: AbortSignal.abort() };
      await assert.rejects(new Transports({ transports: [name] }).open(request), { name: "AbortError" });
    }
  } finally {
    delete globalThis.EventSource;
  }
  assert.equal(FakeWebSocket.opened.length + sources, 0);
});

test("a delay is never one that setTimeout takes for 1 ms", () => {
  const status = (seconds) => statusError(0, { kind: "Status", code: 429, details: { retryAfterSeconds: seconds } });
  const delay = (error) => new Backoff().delay({ error, lived: 0, received: 0, opened: false });
  for (const retryAfter of [parseRetryAfter("9".repeat(400)), parseRetryAfter("Fri, 31 Dec 9999 23:59:59 GMT"), status(1e9).retryAfter]) {
    assert.equal(delay(statusError(429, "", retryAfter)), 2 ** 31 - 1);
  }
  for (const seconds of ["soon", {}, -5]) assert.equal(status(seconds).retryAfter, 0);
  assert.equal(status("5").retryAfter, 5000);
});

test("an infinite idle timeout does not end a stream", async () => {
  const guard = new Guard(new AbortController().signal, Infinity);
  await guard.wait(new Promise((resolve) => setTimeout(resolve, 20)));
  assert.equal(guard.signal.aborted, false);
});

test("an event that is not an object is refused", () => {
  for (const text of ["null", "1", "[]"]) assert.throws(() => parseEvent(text, JSON.parse), { code: "Unsupported" });
});
