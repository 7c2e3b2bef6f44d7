import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { listwatchCollectionOptions } from "@listwatch/tanstack-db";
import { createCollection, createLiveQueryCollection, eq } from "@tanstack/db";
import { objects } from "listwatch";
import { startSite } from "./site.mjs";
import { names, record } from "./record.mjs";

let site, others, open;

const start = async (...flags) => {
  site = await startSite(...flags);
  others = {
    create: (name, enabled = false) => objects(site.direct).create({ metadata: { name }, enabled }),
    delete: (name) => objects(site.direct).delete(name),
  };
};

/** Returns a collection that is closed at the end of the test, and its options. */
function follow(options) {
  const flags = createCollection({ ...listwatchCollectionOptions(site.url, options), startSync: true });
  open.push(flags);
  return flags;
}

beforeEach(() => {
  open = [];
  Math.random = () => 0; // no waiting between attempts
});
afterEach(async () => {
  for (const flags of open) await flags.cleanup();
  await site.close();
});

test("a live query shows the state, changes and deletions", async () => {
  await start();
  await others.create("a", true);
  await others.create("b");
  const flags = follow();
  const enabled = createLiveQueryCollection((q) => q.from({ flag: flags }).where(({ flag }) => eq(flag.enabled, true)));
  open.unshift(enabled);
  await enabled.preload();
  assert.deepEqual([names(enabled), names(flags)], ["a", "a b"]);
  const shown = record(enabled);
  await others.create("c", true);
  await shown.until("a c");
  await objects(site.direct).patch("a", { enabled: false });
  await shown.until("c");
  await others.delete("c");
  await shown.until("");
  assert.equal(names(flags), "a b");
});

test("the first state appears in one piece", async () => {
  await start();
  for (let i = 0; i < 50; i++) await others.create(`f${i}`);
  const flags = follow();
  const shown = record(flags);
  await flags.preload();
  assert.equal(flags.size, 50);
  assert.deepEqual(shown.states.map((state) => state.split(" ").length), [1, 50], "the empty state and the complete one");
});

test("a broken connection resumes and changes nothing else", async () => {
  await start();
  await others.create("a");
  await others.create("b");
  const urls = [];
  const flags = follow({ fetch: (url, init) => (urls.push(new URL(url)), fetch(url, init)) });
  await flags.preload();
  const shown = record(flags);
  const states = [];
  flags.utils.subscribeStatus(() => states.push(flags.utils.getStatus().status));
  site.cut();
  await others.create("c");
  await others.delete("b");
  site.open();
  await shown.until("a c");
  assert.deepEqual(shown.changes.sort(), ["delete b", "insert c"]);
  assert.deepEqual([states[0], states.at(-1)], ["reconnecting", "live"]);
  assert.ok(urls.at(-1).searchParams.get("resourceVersion"), "the watch resumes at a version");
});

test("after a 410 only what has changed is written", async () => {
  await start("--history-bytes", "1");
  for (const name of ["a", "b", "c", "d"]) await others.create(name);
  const urls = [];
  const flags = follow({ fetch: (url, init) => (urls.push(new URL(url)), fetch(url, init)) });
  await flags.preload();
  const shown = record(flags);
  site.cut();
  await others.delete("a");
  await objects(site.direct).patch("b", { enabled: true });
  for (let i = 0; i < 20; i++) await objects(site.direct).patch("c", { turn: i });
  site.open();
  await shown.until("b c d");
  assert.deepEqual(shown.changes.sort(), ["delete a", "update b", "update c"], "one change each, none of d");
  assert.equal(flags.get("c").turn, 19);
  assert.ok(urls.at(-1).searchParams.get("initialEventsSince"), "the last request asks for a difference");
});

test("the state of another epoch replaces the old one in one piece", async () => {
  await start();
  for (const name of ["a", "b"]) await others.create(name);
  const flags = follow();
  await flags.preload();
  const shown = record(flags);
  site.cut();
  await site.restart();
  for (const name of ["b", "c"]) await others.create(name, true);
  site.open();
  await shown.until("b c");
  assert.deepEqual(shown.states, ["a b", "b c"]);
  assert.deepEqual(flags.toArray.map((flag) => flag.enabled), [true, true]);
});

test("a refusal is the error of the collection", async () => {
  await start();
  site.path = "/apis/example.com/v1/missing";
  const flags = follow();
  await assert.rejects(flags.preload(), { code: "NotFound" });
  assert.equal(flags.status, "error");
  assert.deepEqual([flags.utils.getStatus().status, flags.utils.getStatus().error.code], ["failed", "NotFound"]);
});

test("a collection that is cleaned up is closed, and can start again", async () => {
  await start();
  await others.create("a");
  const flags = follow();
  await flags.preload();
  await flags.cleanup();
  assert.equal(flags.size, 0);
  await others.delete("a");
  await others.create("b");
  await flags.preload();
  assert.equal(names(flags), "b");
  assert.equal(flags.utils.getStatus().status, "live");
});
