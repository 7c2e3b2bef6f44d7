// The recipe for optimistic changes in docs/browsers.md.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { beforeEach, test } from "node:test";
import { collection, objects } from "../listwatch.js";
import { event, json, object, status, synced } from "./script.js";

beforeEach(() => (Math.random = () => 0)); // no waiting between attempts

const page = readFileSync(new URL("../../docs/browsers.md", import.meta.url), "utf8");
const [, recipe] = /### Show a change at once[^]*?```js\n([^]*?)```/.exec(page);

const later = () => new Promise((resolve) => setTimeout(resolve));

/** Runs the recipe with a server that has one flag. */
async function start(t) {
  let send, answer;
  const body = new ReadableStream({
    start: (controller) => (send = (e) => controller.enqueue(new TextEncoder().encode(JSON.stringify(e) + "\n"))),
  });
  const fetch = async (url, { method }) => {
    if (method === "PUT") return new Promise((resolve) => (answer = resolve));
    if (new URL(url).searchParams.has("watch")) return new Response(body, { headers: { "Content-Type": "application/json" } });
    return json(object("dark-mode", "7", { enabled: false }));
  };
  const bound = (f) => (path) => f("http://server" + path, { fetch });
  const run = new Function("collection", "objects", "draw", recipe + "; return { flags, shown, change };");
  const own = run(bound(collection), bound(objects), () => {});
  t.after(() => own.flags.close());
  send(event("ADDED", "dark-mode", "7", { enabled: false }));
  send(synced("7"));
  await own.flags.ready;
  return {
    ...own, send,
    enabled: () => own.shown().get("dark-mode")?.enabled,
    /** Waits until the write has been sent. */
    sent: async () => {
      while (!answer) await later();
    },
    answer: (response) => answer(response),
    /** Waits until the collection has the given version of the flag. */
    reached: async (version) => {
      while (own.flags.get("dark-mode")?.metadata.resourceVersion !== version) await later();
    },
  };
}

test("a change is shown until the collection has its result", async (t) => {
  const page = await start(t);
  assert.equal(page.enabled(), false);
  const done = page.change("dark-mode", (flag) => void (flag.enabled = true));
  assert.equal(page.enabled(), true);
  await page.sent();
  page.answer(json(object("dark-mode", "9", { enabled: true })));
  await done;
  assert.equal(page.flags.get("dark-mode").enabled, false); // the event has not arrived
  assert.equal(page.enabled(), true);
  for (const [version, enabled] of [["8", false], ["9", true], ["10", false]]) {
    page.send(event("MODIFIED", "dark-mode", version, { enabled }));
    await page.reached(version);
    assert.equal(page.enabled(), version !== "10", version);
  }
});

test("a change that fails is taken back", async (t) => {
  const page = await start(t);
  const done = page.change("dark-mode", (flag) => void (flag.enabled = true));
  await page.sent();
  page.answer(json(status(403), { status: 403 }));
  await assert.rejects(done, { code: "Forbidden" });
  assert.equal(page.enabled(), false);
});

test("a change of an object that another writer deletes is taken back", async (t) => {
  const page = await start(t);
  const done = page.change("dark-mode", (flag) => void (flag.enabled = true));
  await page.sent();
  page.answer(json(object("dark-mode", "9", { enabled: true })));
  await done;
  page.send(event("DELETED", "dark-mode", "10"));
  await page.reached(undefined);
  assert.equal(page.enabled(), undefined);
});
