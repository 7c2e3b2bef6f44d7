import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const program = '#!/bin/sh\necho "ran $*"\nexit 3\n';

// install copies the package, with the checksum of content, and serves program.
async function install(t, content) {
  const dir = await mkdtemp(join(tmpdir(), "cli-"));
  t.after(() => rm(dir, { recursive: true }));
  await cp(fileURLToPath(new URL("../cli", import.meta.url)), join(dir, "package"), { recursive: true });
  const sum = createHash("sha256").update(content).digest("hex");
  const names = ["linux-amd64", "linux-arm64", "darwin-amd64", "darwin-arm64"];
  await writeFile(join(dir, "package", "checksums.txt"), names.map((name) => `${sum}  listwatch-${name}\n`).join(""));
  let downloads = 0;
  const server = http.createServer((_, response) => { downloads++; response.end(program); }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.on("listening", resolve));
  t.after(() => server.close());
  const env = { ...process.env, XDG_CACHE_HOME: dir, LISTWATCH_DOWNLOAD: `http://127.0.0.1:${server.address().port}` };
  const run = (more = {}) => new Promise((resolve) => {
    execFile(process.execPath, [join(dir, "package", "listwatch.js"), "conformance", "list"], { env: { ...env, ...more } },
      (error, stdout, stderr) => resolve({ code: error?.code ?? 0, stdout, stderr }));
  });
  return { run, downloads: () => downloads };
}

const skip = process.platform === "win32";

test("the program is downloaded once, and its exit code returned", { skip }, async (t) => {
  const { run, downloads } = await install(t, program);
  for (let n = 0; n < 2; n++) {
    assert.deepEqual(await run(), { code: 3, stdout: "ran conformance list\n", stderr: "" });
  }
  assert.equal(downloads(), 1);
});

test("a program with another checksum does not run", { skip }, async (t) => {
  const { run } = await install(t, "another");
  const { code, stdout, stderr } = await run();
  assert.equal(code, 1);
  assert.equal(stdout, "");
  assert.match(stderr, /the checksum is [0-9a-f]{64}, want [0-9a-f]{64}/);
});

test("LISTWATCH_BINARY is used instead", { skip }, async (t) => {
  const { run, downloads } = await install(t, program);
  assert.deepEqual(await run({ LISTWATCH_BINARY: "echo" }), { code: 0, stdout: "conformance list\n", stderr: "" });
  assert.equal(downloads(), 0);
});
