// Faults on real sockets, for each platform's own fetch and WebSocket.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import net from "node:net";
import { after, beforeEach, test } from "node:test";
import { objects, watch } from "../listwatch.js";
import { event } from "./script.js";

beforeEach(() => (Math.random = () => 0)); // no waiting between attempts

const servers = [];
after(() => servers.forEach((end) => end()));

/** Listens on a port, and calls answer with each socket, what it received first, and whether it asks for a WebSocket. */
async function listen(answer) {
  const sockets = new Set();
  const server = net.createServer((socket) => {
    sockets.add(socket.on("error", () => {}));
    socket.once("data", (data) => answer(socket, String(data), /^upgrade: *websocket/im.test(data)));
  });
  servers.push(() => server.close(sockets.forEach((socket) => socket.destroy())));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${server.address().port}/things`;
}

const head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n";
let version = 7;
const added = () => JSON.stringify(event("MODIFIED", "a", `${++version}`));
/** Accepts a WebSocket and sends an event over it. */
function accept(socket, request) {
  const key = /^sec-websocket-key: *(\S+)/im.exec(request)[1];
  const proof = createHash("sha1").update(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest("base64");
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${proof}\r\n\r\n`);
  const text = Buffer.from(added());
  socket.write(Buffer.concat([Buffer.from([0x81, text.length]), text]));
}

const answer = (socket, request, upgrades) => (upgrades ? accept(socket, request) : socket.write(head + added()));

/** Watches url until f returns true for an event or a state. It fails if the watch does not end then. */
async function follow(url, f, options) {
  const controller = new AbortController();
  const see = (what) => f(what) && controller.abort();
  const read = async () => {
    const own = { resourceVersion: "7", idleTimeout: 500, onState: see, signal: controller.signal, ...options };
    for await (const { object } of watch(url, own)) see(object.metadata.name);
  };
  let timer;
  const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error("the watch does not end")), 60_000)));
  await Promise.race([read(), late]);
  clearTimeout(timer);
}

const hang = () => {}, reset = (socket) => socket.resetAndDestroy(), end = (socket) => socket.end();
const respond = (text) => (socket) => socket.end(text);
const refuse = respond("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");

const failures = {
  "resets": reset,
  "ends": end,
  "hangs": hang,
  "breaks in the headers": respond("HTTP/1.1 200 OK\r\nContent-Ty"),
  "is no HTTP server": respond("220 mail.example.com ESMTP\r\n"),
  "switches to nothing": (socket, _, upgrades) => (upgrades ? refuse : respond("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"))(socket),
  "refuses upgrades with 400": (socket, _, upgrades) => (upgrades ? refuse : reset)(socket),
  "leaves upgrades without an answer": (socket, _, upgrades) => (upgrades ? hang : reset)(socket),
  "accepts a WebSocket and cuts it": (socket, request, upgrades) => {
    if (!upgrades) return reset(socket);
    accept(socket, request);
    setTimeout(reset, 50, socket);
  },
};

for (const [name, fail] of Object.entries(failures)) {
  test(`a watch of a server that ${name} waits, goes on later, and ends with its signal`, async () => {
    let isWell = false;
    const url = await listen((socket, ...request) => (isWell ? answer : fail)(socket, ...request));
    let waits = 0;
    await follow(url, ({ state }) => state === "waiting" && ++waits === 3);
    assert.equal(waits, 3);
    let seen;
    waits = 0;
    await follow(url, (what) => {
      isWell ||= what.state === "waiting" && ++waits === 2;
      if (isWell && typeof what === "string") seen = what;
      return seen;
    });
    assert.equal(seen, "a");
  });
}

test("a watch of a host without an address waits and ends with its signal", async () => {
  let waits = 0;
  await follow("http://no-such-host.invalid/things", ({ state }) => state === "waiting" && ++waits === 2);
  assert.equal(waits, 2);
});

test("an abort ends a watch while any transport connects", async () => {
  for (const transports of [["fetch"], ["websocket"], ["fetch", "websocket"]]) {
    if (!globalThis.WebSocket && transports[0] === "websocket") continue;
    const controller = new AbortController();
    const url = await listen(() => controller.abort());
    await follow(url, () => false, { signal: controller.signal, transports });
  }
});

test("a status that no Response can have is reported and retried", async () => {
  for (const status of [600, 999]) {
    const refusals = [`HTTP/1.1 ${status} No\r\nContent-Length: 0\r\n\r\n`];
    const url = await listen((socket) => (refusals.length ? respond(refusals.pop()) : answer)(socket));
    const states = [];
    await follow(url, (what) => typeof what === "string" || !states.push(what));
    assert.match(states[0].error.message, new RegExp(`responded ${status}`));
    const refusing = await listen(respond(`HTTP/1.1 ${status} No\r\nContent-Length: 2\r\n\r\nno`));
    await assert.rejects(objects(refusing, { idleTimeout: 5000 }).get("a"), { name: "WatchError", status });
  }
});
