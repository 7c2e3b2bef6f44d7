import assert from "node:assert/strict";
import { test } from "node:test";
import { presence } from "../listwatch.js";
import { json, status } from "./script.js";

/** A server with one object, which the test can end. `requests` has the methods, and next() waits for one more. */
class Server {
  object;
  requests = [];
  fail = 0; // the number of requests that get no response, after they were performed
  #uids = 0;
  #waiting = [];

  fetch = async (url, { method, body }) => {
    this.requests.push(method);
    const response = this.#respond(method, body && JSON.parse(body));
    this.#waiting.splice(0).forEach((resolve) => resolve());
    if (this.fail-- > 0) throw new TypeError("terminated");
    return response;
  };

  next = () => new Promise((resolve) => this.#waiting.push(resolve));

  #respond(method, body) {
    if (method === "POST" && this.object) return json(status(409, { reason: "AlreadyExists" }), { status: 409 });
    if (method === "POST") {
      this.object = { ...body, metadata: { ...body.metadata, uid: `uid-${++this.#uids}` } };
      return json(this.object, { status: 201 });
    }
    if (!this.object) return json(status(404), { status: 404 });
    const uid = body?.metadata?.uid ?? body?.preconditions?.uid ?? this.object.metadata.uid;
    if (uid !== this.object.metadata.uid) return json(status(409), { status: 409 });
    const { object } = this;
    if (method === "DELETE") this.object = undefined;
    return json(object);
  }
}

/** Starts a presence, and returns it with a function that waits for its next state. */
function start(server) {
  const states = [], waiting = [];
  const onState = ({ state, error }) => {
    const text = [state, error?.code].filter(Boolean).join(" ");
    waiting.length ? waiting.shift()(text) : states.push(text);
  };
  const me = presence("http://server/users", { metadata: { name: "ada" } }, { fetch: server.fetch, every: 5, onState });
  return { me, state: async () => states.shift() ?? new Promise((resolve) => waiting.push(resolve)) };
}

test("an object is created, renewed, and deleted at the end", async () => {
  const server = new Server();
  const { me, state } = start(server);
  assert.equal(await state(), "present");
  while (server.requests.filter((method) => method === "PATCH").length < 3) await server.next();
  await me.close();
  assert.equal(server.object, undefined);
  assert.deepEqual([server.requests[0], server.requests.at(-1)], ["POST", "DELETE"]);
});

test("an object that had ended is created again", async () => {
  const server = new Server();
  const { me, state } = start(server);
  assert.equal(await state(), "present");
  server.object = undefined;
  assert.deepEqual([await state(), await state()], ["lost NotFound", "present"]);
  await me.close();
});

test("a page replaces the object of an earlier one, which fails and deletes nothing", async () => {
  const server = new Server();
  const earlier = start(server);
  assert.equal(await earlier.state(), "present");
  const later = start(server);
  assert.equal(await later.state(), "present");
  assert.equal(await earlier.state(), "failed Conflict");
  await earlier.me.close();
  assert.equal(server.object.metadata.uid, "uid-2");
  await later.me.close();
});

test("a page recognizes its object if the response to the create was lost", async () => {
  const server = new Server();
  server.fail = 1;
  const { me, state } = start(server);
  assert.deepEqual([await state(), await state()], ["waiting Unavailable", "present"]);
  assert.equal(server.object.metadata.uid, "uid-1");
  await me.close();
});

test("a hidden page does not renew, and does at once when it is visible", async () => {
  globalThis.document = Object.assign(new EventTarget(), { hidden: false });
  try {
    const server = new Server();
    const { me, state } = start(server);
    assert.equal(await state(), "present");
    document.hidden = true;
    await new Promise((resolve) => setTimeout(resolve, 30)); // a renewal may be on its way
    const before = server.requests.length;
    await new Promise((resolve) => setTimeout(resolve, 30));
    assert.equal(server.requests.length, before);
    server.object = undefined;
    document.hidden = false;
    document.dispatchEvent(new Event("visibilitychange"));
    assert.deepEqual([await state(), await state()], ["lost NotFound", "present"]);
    await me.close();
  } finally {
    delete globalThis.document;
  }
});

test("a refused presence ends", async () => {
  const server = { fetch: async () => json(status(403), { status: 403 }) };
  const { me, state } = start(server);
  assert.equal(await state(), "failed Forbidden");
  await me.close();
});

test("a renewal without a response ends soon enough for another one", { timeout: 60_000 }, async () => {
  const server = new Server();
  const { me, state } = start({ fetch: (url, request) => (request.method === "PATCH" ? new Promise(() => {}) : server.fetch(url, request)) });
  assert.deepEqual([await state(), await state()], ["present", "waiting Unavailable"]);
  await me.close();
});
