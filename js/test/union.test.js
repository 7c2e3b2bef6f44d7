import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { union } from "../listwatch.js";

beforeEach(() => (Math.random = () => 0)); // no waiting between attempts

const object = (kind, name, resourceVersion) => ({ kind, apiVersion: kind === "Deployment" ? "apps/v1" : "v1", metadata: { name, resourceVersion } });
const event = (type, kind, name, version) => ({ type, object: object(kind, name, version) });
const types = { "k8s.io/initial-events-end": "true", "listwatch.dev/parts": "Node.v1,Deployment.v1.apps" };
const synced = (resourceVersion, annotations = types) => ({ type: "BOOKMARK", object: { kind: "List", apiVersion: "v1", metadata: { resourceVersion, annotations } } });
const bookmark = (resourceVersion) => synced(resourceVersion, undefined);

/** A server whose streams the test writes. It records the URLs of the requests. */
function server() {
  const urls = [], streams = [];
  const fetch = async (url, { signal }) => {
    urls.push(new URL(url));
    const body = new ReadableStream({
      start: (controller) => {
        streams.push(controller);
        signal.addEventListener("abort", () => controller.error(signal.reason));
      },
    });
    return new Response(body, { headers: { "Content-Type": "application/json" } });
  };
  const send = async (...events) => {
    while (streams.length < urls.length || !streams.length) await setImmediate();
    for (const e of events) streams.at(-1).enqueue(new TextEncoder().encode(JSON.stringify(e) + "\n"));
    for (let i = 0; i < 20; i++) await setImmediate();
  };
  return { urls, streams, send, options: { fetch, transports: ["fetch"] } };
}

const open = (s, parts = ["/nodes", { url: "/deployments", selector: "app=a,tier!=b", fields: ["spec", "status.phase"] }]) =>
  union("http://server/watch", parts, s.options);
const names = (collections) => collections.map((c) => [...c.keys()].join(" "));

test("all collections appear at once and follow one stream", async () => {
  const s = server();
  const all = open(s);
  const seen = [];
  all[1].subscribe(() => seen.push(names(all).join("|")));
  await s.send(event("ADDED", "Node", "n1", "3"), event("ADDED", "Deployment", "d1", "4"));
  assert.deepEqual([names(all), all[0].status], [["", ""], "connecting"]);
  await s.send(synced("5"));
  assert.deepEqual([names(all), all.map((c) => c.status)], [["n1", "d1"], ["live", "live"]]);
  await s.send(event("ADDED", "Deployment", "d2", "6"), event("DELETED", "Node", "n1", "7"), event("ADDED", "Node", "d1", "8"));
  assert.deepEqual(names(all), ["d1", "d1 d2"]);
  await Promise.all(all.map((c) => c.ready));
  assert.deepEqual(s.urls.length, 1);
  assert.deepEqual(s.urls[0].searchParams.getAll("of"), ["/nodes", "/deployments?labelSelector=app%3Da%2Ctier%21%3Db&fields=spec%2Cstatus.phase"]);
  all.forEach((c) => c.close());
});

test("a broken stream resumes all collections", async () => {
  const s = server();
  const all = open(s);
  await s.send(event("ADDED", "Node", "n1", "3"), synced("5"), event("ADDED", "Deployment", "d1", "6"), bookmark("9"));
  s.streams[0].error(new TypeError("terminated"));
  while (s.urls.length < 2) await setImmediate();
  assert.deepEqual([s.urls[1].searchParams.get("resourceVersion"), s.urls[1].searchParams.getAll("of").length], ["9", 2]);
  await s.send(event("ADDED", "Node", "n2", "10"));
  assert.deepEqual(names(all), ["n1 n2", "d1"]);
  all.forEach((c) => c.close());
});

test("after a 410 the old objects remain until the new state is complete", async () => {
  const s = server();
  const all = open(s);
  await s.send(event("ADDED", "Node", "n1", "3"), event("ADDED", "Deployment", "d1", "4"), synced("5"));
  await s.send({ type: "ERROR", object: { kind: "Status", code: 410, message: "gone" } });
  while (s.urls.length < 2) await setImmediate();
  assert.equal(s.urls[1].searchParams.get("sendInitialEvents"), "true");
  await s.send(event("ADDED", "Node", "n2", "10"));
  assert.deepEqual(names(all), ["n1", "d1"]);
  await s.send(synced("11"));
  assert.deepEqual(names(all), ["n2", ""]);
  all.forEach((c) => c.close());
});

test("the connection ends with the last collection", async () => {
  const s = server();
  const all = open(s);
  await s.send(event("ADDED", "Node", "n1", "3"), synced("5"));
  all[0].close();
  await s.send(event("ADDED", "Node", "n2", "6"), event("ADDED", "Deployment", "d1", "7"));
  assert.deepEqual([names(all), all.map((c) => c.status)], [["n1", "d1"], ["closed", "live"]]);
  all[1].close();
  for (let i = 0; i < 20; i++) await setImmediate();
  assert.equal(all[1].status, "closed");
  assert.throws(() => s.streams[0].enqueue(new Uint8Array(1)), "the stream is closed");
});

test("a refusal fails all collections", async () => {
  const fetch = async () => new Response(JSON.stringify({ kind: "Status", code: 403, message: "no" }), { status: 403, headers: { "Content-Type": "application/json" } });
  const all = union("http://server/watch", ["/nodes", "/pods"], { fetch, transports: ["fetch"] });
  for (const c of all) await assert.rejects(c.ready, { code: "Forbidden" });
  assert.deepEqual(all.map((c) => c.status), ["failed", "failed"]);
});

test("a server without unions is an error", async () => {
  const s = server();
  const all = open(s);
  await s.send(event("ADDED", "Node", "n1", "3"), synced("5", { "k8s.io/initial-events-end": "true" }));
  await assert.rejects(all[0].ready, { code: "Unsupported" });
});

test("after a 410 with a known state, only what has changed is requested and applied", async () => {
  const s = server();
  const all = open(s);
  const state = (version, id, since) => synced(version, { ...types, "listwatch.dev/state": id, ...(since && { "listwatch.dev/initial-events-since": since }) });
  await s.send(event("ADDED", "Node", "n1", "3"), event("ADDED", "Node", "n2", "4"), event("ADDED", "Deployment", "d1", "4"), state("5", "S"));
  await s.send({ type: "ERROR", object: { kind: "Status", code: 410, message: "gone" } });
  while (s.urls.length < 2) await setImmediate();
  const { searchParams } = s.urls[1];
  assert.deepEqual([searchParams.get("initialEventsSince"), searchParams.get("initialEventsState")], ["5", "S"]);
  await s.send(event("DELETED", "Node", "n1", "9"), event("ADDED", "Deployment", "d2", "8"));
  assert.deepEqual(names(all), ["n1 n2", "d1"]);
  await s.send(state("11", "S", "5"), event("ADDED", "Node", "n3", "12"));
  assert.deepEqual(names(all), ["n2 n3", "d1 d2"]);
  all.forEach((c) => c.close());
});
