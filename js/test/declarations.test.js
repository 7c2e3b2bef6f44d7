import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import * as client from "../listwatch.js";

const declarations = readFileSync(new URL("../listwatch.d.ts", import.meta.url), "utf8");
const source = (name) => readFileSync(new URL(`../src/${name}.js`, import.meta.url), "utf8");

test("all exported values are declared, and no others", () => {
  const declared = [...declarations.matchAll(/^export (?:function|class|const) (\w+)/gm)].map((match) => match[1]);
  assert.deepEqual(declared.sort(), Object.keys(client).sort());
});

test("all codes of errors are declared", () => {
  const used = ["errors", "fetch", "websocket", "eventsource", "queue", "guard", "events", "resume", "requests", "transports", "watch"]
    .flatMap((name) => [...source(name).matchAll(/(?:new WatchError\(|code = |\d: )"(\w+)"/g)].map((match) => match[1]));
  const declared = [...declarations.matchAll(/\| "(\w+)"/g)].map((match) => match[1]);
  assert.ok(used.length > 20);
  for (const code of new Set(used)) assert.ok(declared.includes(code), code);
});
