import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { createInterface } from "node:readline";

/** Starts `listwatch serve` behind a proxy, so that its URL outlives a cut connection and a restart. */
export async function startSite(...flags) {
  const sockets = new Set();
  let server, address, isOpen = true;
  const proxy = createServer((client) => {
    if (!isOpen) return client.destroy();
    const upstream = connect(address);
    for (const [from, to] of [[client, upstream], [upstream, client]]) {
      sockets.add(from);
      from.pipe(to);
      from.on("error", () => to.destroy()).on("close", () => (sockets.delete(from), to.destroy()));
    }
  });
  const start = async () => {
    const args = ["serve", "--addr", "127.0.0.1:0", "--resource", "flags.v1.example.com=Flag,cluster", ...flags];
    server = spawn(process.env.LISTWATCH, args, { stdio: ["ignore", "pipe", "ignore"] });
    for await (const line of createInterface(server.stdout)) {
      const [, port] = /http:\/\/127\.0\.0\.1:(\d+)/.exec(line) ?? [];
      if (port) return (address = { host: "127.0.0.1", port: Number(port) });
    }
    throw new Error("listwatch serve has printed no URL");
  };
  const stop = async () => {
    server.kill("SIGKILL");
    await once(server, "exit");
  };
  await start();
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const path = "/apis/example.com/v1/flags";
  return {
    path,
    get url() {
      return `http://127.0.0.1:${proxy.address().port}${this.path}`;
    },
    /** The URL without the proxy. */
    get direct() {
      return `http://127.0.0.1:${address.port}${path}`;
    },
    /** Breaks all connections, and refuses new ones until open is called. */
    cut() {
      isOpen = false;
      for (const socket of sockets) socket.destroy();
    },
    open() {
      isOpen = true;
    },
    /** Loses all objects. */
    async restart() {
      await stop();
      await start();
    },
    async close() {
      proxy.close();
      this.cut();
      await stop();
    },
  };
}
