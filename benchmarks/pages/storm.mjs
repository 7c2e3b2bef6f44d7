// A load process of BenchmarkRestart whose clients are collections, as in a page each. It speaks
// the protocol of load_test.go. Their copies are in the memory of this process, so after "-1" it
// closes the collections, and opens them again after another line.
import "fake-indexeddb/auto";
import http from "node:http";
import readline from "node:readline";
import { collection } from "../../js/listwatch.js";

const { Clients: clients, Addr: addr, Watchers: count } = JSON.parse(process.env.LISTWATCH_BENCH_LOAD);
const url = `http://${addr}/${clients.Path}`;

// What the clients read is counted at their sockets.
const sockets = new Set();
let closedBytes = 0;
const createConnection = http.globalAgent.createConnection;
http.globalAgent.createConnection = function (...args) {
  const socket = createConnection.apply(this, args);
  sockets.add(socket);
  socket.on("close", () => {
    closedBytes += socket.bytesRead;
    sockets.delete(socket);
  });
  return socket;
};
const bytesRead = () => [...sockets].reduce((sum, socket) => sum + socket.bytesRead, closedBytes);

let total = 0, opened, bytesBefore, times, open;
let wanted = { total: Infinity };

function openAll() {
  [opened, bytesBefore, times] = [performance.now(), bytesRead(), []];
  open = Array.from({ length: count }, (_, number) => {
    const one = collection(url, {
      persist: clients.Copies ? `page ${number}` : undefined,
      fieldSelector: clients.PerNode ? `spec.node=node-${number % 1000}` : undefined,
    });
    one.ready.then(complete, (error) => {
      if (one.status === "failed") throw error;
    });
    return one;
  });
}

function complete() {
  times.push(performance.now() - opened);
  if (++total === wanted.total) wanted.resolve();
}

/** Waits until each collection has a copy. */
async function saved() {
  for (;;) {
    const db = await result(indexedDB.open("listwatch"));
    const stored = db.objectStoreNames.contains("headers")
      ? await result(db.transaction("headers").objectStore("headers").count()) : 0;
    db.close();
    if (stored === count) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

const result = (request) => new Promise((resolve, reject) => {
  request.onsuccess = () => resolve(request.result);
  request.onerror = () => reject(request.error);
});

const nanoseconds = (milliseconds) => Math.round(milliseconds * 1e6);

console.log("started");
for await (const line of readline.createInterface({ input: process.stdin })) {
  if (line === "") {
    openAll();
    console.log("ready");
  } else if (line === "-1") {
    if (clients.Copies) await saved();
    for (const one of open) one.close();
    console.log("stopped");
  } else {
    if (total < Number(line)) await new Promise((resolve) => (wanted = { total: Number(line), resolve }));
    times.sort((a, b) => a - b);
    const { user, system } = process.cpuUsage();
    console.log(`got\n${(user + system) * 1000} ${bytesRead() - bytesBefore} ${nanoseconds(times[times.length >> 1])} ${nanoseconds(times.at(-1))}`);
  }
}
process.exit(0);
