import assert from "node:assert/strict";
import { test } from "node:test";
import { listwatchCollectionOptions } from "@listwatch/tanstack-db";
import { createCollection } from "@tanstack/db";
import { createSQLiteCorePersistenceAdapter, persistedCollectionOptions, SingleProcessCoordinator } from "@tanstack/db-sqlite-persistence-core";
import { objects } from "listwatch";
import sqlite from "node-sqlite3-wasm";
import { names, record } from "./record.mjs";
import { startSite } from "./site.mjs";

/** Returns the driver of a database in memory, which outlives the collections. */
function openDatabase() {
  const db = new sqlite.Database();
  let last = Promise.resolve();
  const driver = {
    exec: async (sql) => db.exec(sql),
    run: async (sql, params) => void db.run(sql, params),
    query: async (sql, params) => db.all(sql, params),
    transaction: (use) => {
      const result = last.then(async () => {
        db.exec("BEGIN");
        try {
          const value = await use(driver);
          db.exec("COMMIT");
          return value;
        } catch (error) {
          db.exec("ROLLBACK");
          throw error;
        }
      });
      last = result.catch(() => {});
      return result;
    },
  };
  return { ...driver, transactionWithDriver: driver.transaction };
}

test("a persisted collection continues with what has changed", async (t) => {
  const site = await startSite();
  t.after(() => site.close());
  const others = objects(site.direct);
  for (const name of ["a", "b", "c"]) await others.create({ metadata: { name } });
  const driver = openDatabase();
  let adapter = createSQLiteCorePersistenceAdapter({ driver, schemaVersion: 1 });
  const received = [];
  const parse = (text) => {
    const { type, object } = JSON.parse(text);
    received.push(`${type} ${object.metadata.name ?? ""}`);
    return { type, object };
  };
  /** Follows as a page that is loaded again. */
  const follow = (options) => createCollection(persistedCollectionOptions({
    ...listwatchCollectionOptions(site.url, { parse, ...options }), id: "flags", persistence: { adapter, coordinator: new SingleProcessCoordinator() },
  }));
  const saved = async () => (await adapter.loadSubset("flags", {})).map(({ key }) => key).sort().join(" ");
  const isSaved = async (want) => {
    while ((await saved()) !== want) await new Promise(setImmediate);
  };

  const first = follow();
  await first.preload();
  assert.equal(names(first), "a b c");
  await isSaved("a b c");
  await first.cleanup();
  await others.delete("a");
  await others.create({ metadata: { name: "d" } });

  received.length = 0;
  const second = follow();
  const shown = record(second);
  await shown.until("b c d");
  assert.deepEqual(shown.states, ["", "a b c", "b c d"]);
  assert.deepEqual(received, ["ADDED d", "DELETED a", "BOOKMARK "]);
  await isSaved("b c d");
  await second.cleanup();

  received.length = 0;
  adapter = createSQLiteCorePersistenceAdapter({ driver, schemaVersion: 2 }); // removes the rows, but not the position
  const third = follow();
  await third.preload();
  assert.equal(names(third), "b c d");
  assert.deepEqual(received, ["BOOKMARK ", "ADDED b", "ADDED c", "ADDED d", "BOOKMARK "]);
  await isSaved("b c d");
  await third.cleanup();

  const selected = follow({ selector: "app=web" }); // the copy is not one of this selection
  const other = record(selected);
  await other.until("b c d");
  await other.until("");
  await isSaved("");
  await selected.cleanup();
});
