import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { listwatchCollectionOptions } from "@listwatch/tanstack-db";
import { createCollection } from "@tanstack/db";
import { objects } from "listwatch";
import { names, record } from "./record.mjs";
import { startSite } from "./site.mjs";

let site, others, flags, requests, beforeWrite, afterWrite, events;

/** Calls the hooks of the test around each write, and delays the events of the watch until `events` is fulfilled. */
async function hooked(url, init) {
  if (init.method === "GET") {
    const { body, status, headers } = await fetch(url, init);
    const transform = async (chunk, controller) => {
      await events;
      controller.enqueue(chunk);
    };
    return new Response(body.pipeThrough(new TransformStream({ transform })), { status, headers });
  }
  requests.push([init.method, init.body && JSON.parse(init.body)]);
  await beforeWrite(init.method, url);
  const response = await fetch(url, init);
  await afterWrite(init.method, url);
  return response;
}

async function follow(options) {
  flags = createCollection({ ...listwatchCollectionOptions(site.url, { fetch: hooked, ...options }), startSync: true });
  await flags.preload();
}

/** Delays the events of the watch until the next write has its response and more than that has happened. */
function delayEvents() {
  let deliver;
  events = new Promise((resolve) => (deliver = resolve));
  afterWrite = async () => {
    setTimeout(deliver, 20); // a page that did not wait for the event would show the old state until then
  };
}

/** Shows the rows with what the user sees of them. */
const show = (collection) => collection.toArray.map(({ metadata, enabled }) => metadata.name + (enabled ? "+" : "-")).sort().join(" ");

before(async () => {
  site = await startSite();
  others = objects(site.direct);
});
after(() => site.close());
beforeEach(async () => {
  requests = [];
  beforeWrite = afterWrite = () => {};
  events = undefined;
  await others.create({ metadata: { name: "a" }, enabled: false });
});
afterEach(async () => {
  await flags.cleanup();
  const { items } = await (await fetch(site.direct)).json();
  for (const { metadata } of items) await others.delete(metadata.name);
});

test("an optimistic insert never disappears", async () => {
  await follow();
  delayEvents();
  const shown = record(flags, show);
  const written = flags.insert({ metadata: { name: "b" }, enabled: true });
  assert.deepEqual(shown.states, ["a-", "a- b+"], "at once");
  await written.when("settled");
  assert.ok(flags.get("b").metadata.resourceVersion, "the row is that of the server");
  assert.deepEqual(new Set(shown.states.slice(1)), new Set(["a- b+"]));
  assert.ok(!shown.changes.includes("delete b"));
});

test("an optimistic update is never undone", async () => {
  await follow();
  delayEvents();
  const shown = record(flags, show);
  await flags.update("a", (flag) => { flag.enabled = true; }).when("settled");
  assert.equal(flags.get("a").metadata.generation, 2, "the row is that of the server");
  assert.deepEqual(new Set(shown.states.slice(1)), new Set(["a+"]));
});

test("an optimistic deletion is never undone", async () => {
  await follow();
  delayEvents();
  const shown = record(flags, show);
  await flags.delete("a").when("settled");
  assert.deepEqual(shown.states, ["a-", ""]);
  await assert.rejects(others.get("a"), { code: "NotFound" });
});

test("a write that loses to another writer is rolled back", async () => {
  await follow();
  const shown = record(flags, show);
  beforeWrite = () => others.patch("a", { enabled: false, reason: "theirs" });
  const written = flags.update("a", (flag) => { flag.enabled = true; });
  await assert.rejects(written.when("settled"), { code: "Conflict", status: 409 });
  beforeWrite = () => {};
  assert.equal(shown.states.at(-1), "a-");
  await flags.utils.awaitVersion((await others.get("a")).metadata.resourceVersion);
  assert.equal(flags.get("a").reason, "theirs");
  await flags.update("a", (flag) => { flag.enabled = true; }).when("settled"); // from the new version
  assert.equal((await others.get("a")).enabled, true);
});

test("quick writes of one object are sent in turn", async () => {
  await follow();
  const shown = record(flags, show);
  beforeWrite = (method) => method === "POST" && new Promise((resolve) => setTimeout(resolve, 20)); // it must not be overtaken
  const insert = flags.insert({ metadata: { name: "b" }, turn: 0, enabled: true });
  const updates = [1, 2, 3].map((turn) => flags.update("b", (flag) => { flag.turn = turn; }));
  await Promise.all([insert, ...updates].map((written) => written.when("settled")));
  assert.equal((await others.get("b")).turn, 3);
  assert.equal(flags.get("b").turn, 3);
  assert.deepEqual(requests.map(([method]) => method), ["POST", "PATCH", "PATCH", "PATCH"]);
  await Promise.all([flags.update("b", (flag) => { flag.turn = 4; }), flags.delete("b")].map((written) => written.when("settled")));
  assert.equal(shown.states.at(-1), "a-");
  assert.deepEqual(new Set(shown.states), new Set(["a-", "a- b+"]));
});

test("quick writes of one version do not conflict", async () => {
  await follow();
  const updates = [1, 2, 3].map((turn) => flags.update("a", (flag) => { flag.turn = turn; }));
  await Promise.all(updates.map((written) => written.when("settled")));
  assert.equal(flags.get("a").turn, 3);
  const versions = requests.map(([, { metadata }]) => metadata.resourceVersion);
  assert.equal(new Set(versions).size, 3, "each is a precondition on the result of the one before");
});

test("a slow write does not undo a fast one", async () => {
  await follow();
  const shown = record(flags, show);
  let release;
  afterWrite = (method, url) => String(url).endsWith("/a") && new Promise((resolve) => (release = resolve));
  const slow = flags.update("a", (flag) => { flag.enabled = true; });
  const fast = flags.insert({ metadata: { name: "b" }, enabled: true });
  await fast.when("settled");
  await flags.update("b", (flag) => { flag.enabled = false; }).when("settled");
  release();
  await slow.when("settled");
  assert.deepEqual([...new Set(shown.states)], ["a-", "a+", "a+ b+", "a+ b-"]);
});

test("a write sends only what has changed", async () => {
  await others.create({ metadata: { name: "b", labels: { team: "x", app: "web" } }, spec: { list: [1, 2], deep: { one: 1, two: 2 } } });
  await follow();
  await flags.update("b", (flag) => {
    delete flag.metadata.labels.team;
    flag.spec.deep.two = 3;
    flag.spec.list.push(3);
  }).when("settled");
  const [[method, { metadata, ...patch }]] = requests;
  assert.equal(method, "PATCH");
  assert.ok(metadata.resourceVersion);
  assert.deepEqual([metadata.labels, patch], [{ team: null }, { spec: { deep: { two: 3 }, list: [1, 2, 3] } }]);
  assert.deepEqual(flags.get("b").metadata.labels, { app: "web" });
});

test("in a transaction of several objects those that succeed stay", async () => {
  await follow();
  const shown = record(flags, show);
  beforeWrite = (method, url) => JSON.stringify(requests).includes('"c"') && others.create({ metadata: { name: "c" } }).catch(() => {});
  const written = flags.insert(["b", "c"].map((name) => ({ metadata: { name }, enabled: true })));
  await assert.rejects(written.when("settled"), { code: "AlreadyExists" });
  await flags.utils.awaitVersion((await others.get("c")).metadata.resourceVersion);
  assert.equal(names(flags), "a b c");
  assert.ok(shown.states.slice(1).every((state) => state.includes("b+")), "b never disappears");
});

test("a write outside the selection ends after the timeout", async () => {
  await follow({ selector: "app=web", writeTimeout: 50 });
  await flags.insert({ metadata: { name: "b" }, enabled: true }).when("settled");
  assert.equal(names(flags), "");
  assert.equal((await others.get("b")).enabled, true);
});
