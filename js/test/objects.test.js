import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { objects } from "../listwatch.js";

beforeEach(() => (Math.random = () => 0)); // no waiting between attempts

const object = (version, more) => ({ metadata: { name: "a", resourceVersion: version }, ...more });
const json = (body, status = 200) => new Response(JSON.stringify(body), { status, headers: { "Content-Type": "application/json" } });
const failure = (code, reason) => json({ kind: "Status", code, reason, message: `status ${code}` }, code);

/** Returns objects whose requests get the next response, and the requests. */
function script(url, responses, options) {
  const requests = [];
  const fetch = async (at, { method, body, headers }) => {
    requests.push({ line: `${method} ${new URL(at).pathname}${new URL(at).search}`, body: body && JSON.parse(body), type: headers["Content-Type"] });
    return responses.shift();
  };
  return { things: objects(url, { fetch, ...options }), requests };
}

test("an update writes the version that it has read", async () => {
  const { things, requests } = script("http://server/things", [json(object("3")), json(object("4", { value: 1 }))]);
  const updated = await things.update("a", (thing) => ({ metadata: { name: thing.metadata.name }, value: 1 }));
  assert.equal(updated.metadata.resourceVersion, "4");
  assert.deepEqual(requests.map(({ line }) => line), ["GET /things/a", "PUT /things/a"]);
  assert.deepEqual(requests[1].body, object("3", { value: 1 }));
});

test("an update that lost to another writer starts again", async () => {
  const responses = [];
  for (let tries = 0; tries < 3; tries++) responses.push(json(object(`${tries}`, { value: tries })), failure(409, "Conflict"));
  const { things, requests } = script("http://server/things", [...responses, json(object("9", { value: 9 })), json(object("10", { value: 10 }))]);
  await things.update("a", (thing) => void thing.value++);
  assert.deepEqual(requests.at(-1).body, object("9", { value: 10 }));
});

test("an update gives up after a hundred conflicts", async () => {
  const responses = [];
  for (let tries = 0; tries < 101; tries++) responses.push(json(object("1")), failure(409, "Conflict"));
  const { things, requests } = script("http://server/things", responses);
  await assert.rejects(things.update("a", (thing) => void (thing.value = 1)), { code: "Conflict", status: 409 });
  assert.equal(requests.length, 200);
});

test("an update without a modification, or whose function throws, writes nothing", async () => {
  const { things, requests } = script("http://server/things", [json(object("3")), json(object("3"))]);
  assert.deepEqual(await things.update("a", () => {}), object("3"));
  await assert.rejects(things.update("a", () => { throw new RangeError("no"); }), RangeError);
  assert.deepEqual(requests.map(({ line }) => line), ["GET /things/a", "GET /things/a"]);
});

test("an update refuses an object without a version", async () => {
  const { things } = script("http://server/things", [json({ metadata: { name: "a" } })]);
  await assert.rejects(things.update("a", (thing) => void (thing.value = 1)), { code: "Unsupported" });
});

test("a create reports that the name is taken", async () => {
  const { things, requests } = script("http://server/things", [json(object("3"), 201), failure(409, "AlreadyExists")]);
  assert.deepEqual(await things.create({ metadata: { name: "a" } }), object("3"));
  await assert.rejects(things.create({ metadata: { name: "a" } }), { code: "AlreadyExists" });
  assert.equal(requests[0].line, "POST /things");
  assert.equal(requests[0].type, "application/json");
});

test("a patch is a merge patch unless the caller names another type", async () => {
  const { things, requests } = script("http://server/things", [json(object("4")), json(object("5"))]);
  await things.patch("a", { value: null });
  await things.patch("a", [{ op: "remove", path: "/value" }], "application/json-patch+json");
  assert.deepEqual(requests.map(({ line, type }) => [line, type]), [
    ["PATCH /things/a", "application/merge-patch+json"], ["PATCH /things/a", "application/json-patch+json"],
  ]);
  assert.deepEqual(requests[0].body, { value: null });
});

test("a delete returns the last state if the server sends it", async () => {
  const { things, requests } = script("http://server/things", [
    json(object("4")), json({ kind: "Status", status: "Success" }), new Response(null, { status: 204 }),
    new Response("deleted", { status: 200 }), failure(409, "Conflict"), failure(412, "Conflict"),
  ]);
  assert.deepEqual(await things.delete("a", { resourceVersion: "3" }), object("4"));
  assert.equal(requests[0].body.preconditions.resourceVersion, "3");
  for (let i = 0; i < 3; i++) assert.equal(await things.delete("a"), undefined);
  assert.equal(requests[1].body, undefined);
  for (let i = 0; i < 2; i++) await assert.rejects(things.delete("a", { resourceVersion: "3" }), { code: "Conflict" });
});

test("the URL of an object has its namespace", async () => {
  const lines = async (url, key, options) => {
    const { things, requests } = script(url, [json(object("1")), json(object("1"), 201)], options);
    await things.get(key);
    await things.create({ metadata: { namespace: key.split("/").at(-2) } });
    return requests.map(({ line }) => line);
  };
  for (const [url, key, want, options] of [
    ["http://s/things/", "a b", ["GET /things/a%20b", "POST /things"]],
    ["http://s/things?labelSelector=x&limit=1&key=2", "n/a", ["GET /things/n/a?key=2", "POST /things/n?key=2"]],
    ["http://s/api/v1/pods", "n/a", ["GET /api/v1/namespaces/n/pods/a", "POST /api/v1/namespaces/n/pods"]],
    ["http://s/apis/g.io/v1beta1/namespaces/n/things", "n/a", ["GET /apis/g.io/v1beta1/namespaces/n/things/a", "POST /apis/g.io/v1beta1/namespaces/n/things"]],
    ["http://s/apis/g.io/v1/things", "a", ["GET /apis/g.io/v1/things/a", "POST /apis/g.io/v1/things"]],
    ["http://s/api/v2/flags", "n/a", ["GET /api/v2/flags/n/a", "POST /api/v2/flags/n"], { plainPaths: true }],
  ]) assert.deepEqual(await lines(url, key, options), want);
  const things = objects("http://s/api/v1/namespaces/n/pods");
  for (const key of ["", "m/a", "n/..", "a/b/c", "%61"]) await assert.rejects(things.get(key), { code: "Invalid" }, key);
});

test("a write is never redirected", async () => {
  const moved = new Response(null, { status: 308, headers: { Location: "/elsewhere" } });
  const { things, requests } = script("http://server/things", [moved]);
  await assert.rejects(things.create({ metadata: {} }), { code: "Unsupported", status: 308 });
  assert.equal(requests.length, 1);
});

test("a write is sent once more with fresh credentials after a 401", async () => {
  const asked = [];
  const headers = ({ refresh }) => (asked.push(refresh), {});
  const { things, requests } = script("http://server/things", [failure(401), json(object("1"))], { headers });
  await things.patch("a", {});
  assert.deepEqual(asked, [false, true]);
  assert.equal(requests.length, 2);
});

test("a write that broke is not repeated", async () => {
  let sent = 0;
  const things = objects("http://server/things", { fetch: async () => { sent++; throw new TypeError("network error"); } });
  await assert.rejects(things.create({ metadata: {} }), { code: "Unavailable" });
  assert.equal(sent, 1);
});

test("an aborted signal ends an update", async () => {
  const controller = new AbortController();
  const { things } = script("http://server/things", [json(object("1"))], { signal: controller.signal });
  await assert.rejects(things.update("a", (thing) => {
    thing.value = 1;
    controller.abort(new Error("enough"));
  }));
});
