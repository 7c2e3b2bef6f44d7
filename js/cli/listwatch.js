#!/usr/bin/env node
// Runs the program listwatch of the version of this package:
//
//	npx listwatch-cli conformance server --url http://127.0.0.1:8080/api/v1/pods
//
// The first run downloads the program to the cache of the user, and verifies it by checksums.txt,
// which is part of the package. LISTWATCH_BINARY names a program to run instead, and
// LISTWATCH_DOWNLOAD another place of the release's files.
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { chmod, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { join } from "node:path";

const here = (name) => readFile(new URL(name, import.meta.url), "utf8");

const systems = { linux: "linux", darwin: "darwin", win32: "windows" };
const processors = { x64: "amd64", arm64: "arm64" };

const sum = (data) => createHash("sha256").update(data).digest("hex");

// installed returns the path of the program, which it downloads if necessary.
async function installed() {
  const { version } = JSON.parse(await here("package.json"));
  const name = `listwatch-${systems[process.platform]}-${processors[process.arch]}${process.platform === "win32" ? ".exe" : ""}`;
  const line = (await here("checksums.txt").catch(() => "")).split("\n").find((line) => line.endsWith(`  ${name}`));
  if (!line) throw new Error(`version ${version} has no ${name}: set LISTWATCH_BINARY to the path of a program`);
  const want = line.split(" ")[0];
  const cache = process.env.XDG_CACHE_HOME || join(homedir(), ".cache");
  const file = join(cache, "listwatch", version, name);
  const cached = await readFile(file).catch(() => null);
  if (cached && sum(cached) === want) return file;

  const from = process.env.LISTWATCH_DOWNLOAD ||
    `https://github.com/listwatch/listwatch/releases/download/cmd/listwatch/v${version}`;
  const response = await fetch(`${from}/${name}`);
  if (!response.ok) throw new Error(`${from}/${name}: status ${response.status}`);
  const data = Buffer.from(await response.arrayBuffer());
  if (sum(data) !== want) throw new Error(`${from}/${name}: the checksum is ${sum(data)}, want ${want}`);
  await mkdir(join(cache, "listwatch", version), { recursive: true });
  const part = `${file}.${process.pid}`; // several runs may download at the same time
  try {
    await writeFile(part, data);
    await chmod(part, 0o755);
    await rename(part, file);
  } finally {
    await rm(part, { force: true });
  }
  return file;
}

try {
  const child = spawn(process.env.LISTWATCH_BINARY || await installed(), process.argv.slice(2), { stdio: "inherit" });
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => child.kill(signal));
  child.on("error", (e) => {
    console.error(`listwatch: ${e.message}`);
    process.exitCode = 1;
  });
  child.on("exit", (code, signal) => { process.exitCode = signal ? 1 : code; });
} catch (e) {
  console.error(`listwatch: ${e.message}`);
  process.exitCode = 1;
}
