// An adapter for listwatch conformance: it starts your server and writes objects to it.
//
//	listwatch conformance server --exec 'node adapter.mjs' --known-failures known_failures.txt
//
// Change command, collection, kind, put and del for your server. docs/conformance-hook.md describes
// the lines that the adapter and the suite exchange, and what else an adapter can offer.
import { spawn } from "node:child_process";
import net from "node:net";
import readline from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

// command starts a server with an empty collection, and kind is the kind of its objects.
const command = process.env.SERVER_COMMAND ?? "./server --port {port}";
const collection = process.env.SERVER_URL ?? "http://127.0.0.1:{port}/things";
const kind = process.env.SERVER_KIND ?? "Thing";

// put creates an object, or replaces it if it exists. It returns the version.
async function put(url, key, object) {
  let response = await send("PUT", `${url}/${key.namespace}/${key.name}`, object);
  if (response.status === 404) response = await send("POST", url, object);
  return { version: (await written(response)).metadata.resourceVersion };
}

// del deletes an object. It returns the version of the delete.
async function del(url, key) {
  const response = await send("DELETE", `${url}/${key.namespace}/${key.name}`);
  if (response.status === 404) return { error: "not found", code: "NotFound" };
  return { version: (await written(response)).metadata.resourceVersion };
}

// compact discards all history. Level 1 requires it. If your server can do it, add "compact" to can
// below.
async function compact(url) {
  await written(await send("POST", url.replace("/things", "/compact"), {}));
  return {};
}

const send = (method, url, object) =>
  fetch(url, { method, body: object && JSON.stringify(object), headers: { "Content-Type": "application/json" } });

async function written(response) {
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.status}: ${text}`);
  return JSON.parse(text);
}

const servers = new Map();

// start starts a server on a free port, and returns the URL of its collection.
async function start(at) {
  const port = await freePort();
  const child = spawn(`exec ${command.replaceAll("{port}", port)}`, { shell: true, stdio: ["ignore", 2, 2] });
  const server = { child, url: collection.replaceAll("{port}", port) };
  servers.set(at, server);
  while (child.exitCode === null) {
    if (await connects(port)) return server.url;
    await sleep(10);
  }
  throw new Error(`the server has exited with code ${child.exitCode}: ${command}`);
}

// freePort finds a port that connections do not take before the server listens: it is not an
// ephemeral one.
const freePort = () => new Promise((resolve) => {
  const port = 10000 + Math.floor(Math.random() * 10000);
  const listener = net.createServer().on("error", () => resolve(freePort()));
  listener.listen(port, "127.0.0.1", () => listener.close(() => resolve(port)));
});

const connects = (port) => new Promise((resolve) => {
  const connection = net.connect(port, "127.0.0.1", () => resolve(true));
  connection.on("error", () => resolve(false)).on("connect", () => connection.destroy());
});

async function act({ id, do: what, at = "", key, object }) {
  switch (what) {
    case "open":
      return { at: `c${id}`, url: await start(`c${id}`) };
    case "close":
      servers.get(at).child.kill("SIGKILL");
      servers.delete(at);
      return {};
    case "put":
      return put(servers.get(at).url, key, object);
    case "compact":
      return compact(servers.get(at).url);
    default:
      return del(servers.get(at).url, key);
  }
}

const reply = (line) => process.stdout.write(JSON.stringify(line) + "\n");
process.on("exit", () => servers.forEach(({ child }) => child.kill("SIGKILL")));
reply({ url: await start(""), kind, can: ["open", "put", "lives"] });
readline.createInterface({ input: process.stdin }).on("line", async (line) => {
  const request = JSON.parse(line);
  reply({ id: request.id, ...(await act(request).catch((e) => ({ error: e.message }))) });
}).on("close", () => process.exit(0));
