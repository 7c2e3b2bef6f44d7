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

  refusals = 0; // the number of requests to be refused with status 401
  returnsObjects = true; // also if the client prefers a minimal response
  credentials = []; // of the requests

  fetch = async (url, { method, body, headers: own }) => {
    const headers = new Headers(own);
    this.requests.push(method);
    this.credentials.push(headers.get("authorization"));
    const refused = this.refusals > 0 && method === "POST" && this.refusals--;
    const response = refused ? json(status(401), { status: 401 }) : this.#respond(method, body && JSON.parse(body), headers);
    this.#waiting.splice(0).forEach((resolve) => resolve());
    if (this.fail-- > 0) throw new TypeError("terminated");
    return response;
  };

  next = () => new Promise((resolve) => this.#waiting.push(resolve));

  #respond(method, body, headers) {
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
    if (method === "PATCH") this.preferences = headers.get("prefer");
    return headers.has("prefer") && !this.returnsObjects ? new Response(null, { status: 204 }) : json(object);
  }
}

/** Starts a presence, and returns it with a function that waits for its next state. */
function start(server, options) {
  const states = [], waiting = [];
  const onState = ({ state, error }) => {
    const text = [state, error?.code].filter(Boolean).join(" ");
    waiting.length ? waiting.shift()(text) : states.push(text);
  };
  const me = presence("http://server/users", { metadata: { name: "ada" } }, { fetch: server.fetch, every: 5, onState, ...options });
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

test("a renewal needs no object in the response", async () => {
  const server = new Server();
  server.returnsObjects = false;
  const { me, state } = start(server);
  assert.equal(await state(), "present");
  while (server.requests.filter((method) => method === "PATCH").length < 3) await server.next();
  assert.equal(server.preferences, "return=minimal");
  server.object = undefined;
  assert.deepEqual([await state(), await state()], ["lost NotFound", "present"]);
  await me.close();
});

test("a page sends the preference only to its own origin", async () => {
  try {
    for (const [origin, want] of [["http://server", "return=minimal"], ["http://page", null]]) {
      globalThis.location = { href: origin + "/page", origin };
      const server = new Server();
      const { me, state } = start(server);
      assert.equal(await state(), "present");
      while (!server.requests.includes("PATCH")) await server.next();
      assert.equal(server.preferences, want);
      await me.close();
    }
  } finally {
    delete globalThis.location;
  }
});

// While the page was offline, the object has ended and the token has expired.
test("an object that had ended is created again with fresh credentials", async () => {
  const server = new Server();
  const { me, state } = start(server, { headers: ({ refresh }) => ({ Authorization: refresh ? "fresh" : "old" }) });
  assert.equal(await state(), "present");
  server.refusals = 1;
  server.object = undefined;
  assert.deepEqual([await state(), await state()], ["lost NotFound", "present"]);
  assert.deepEqual(server.credentials.filter((token) => token === "fresh"), ["fresh"]);
  server.refusals = 2; // the fresh credentials are refused, too
  server.object = undefined;
  assert.deepEqual([await state(), await state()], ["lost NotFound", "failed Unauthorized"]);
  await me.close();
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
