// listwatch conformance client --exec 'node js/test/conformance/chromium.js'
//
// Runs the client in a headless browser, which LISTWATCH_BROWSER may name. The page receives the
// suite's requests as server-sent events and posts its replies. The suite's servers have many
// origins and know nothing of CORS, so the browser does not enforce it.
import { spawn } from "node:child_process";
import { createReadStream, mkdtempSync, rmSync } from "node:fs";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import readline from "node:readline";

const page = `<!doctype html><script type="module">
  import { adapter } from "/test/conformance/adapter.js";
  let lines = [], posting = false;
  const post = async () => {
    for (posting = true; lines.length > 0; ) {
      await fetch("/replies", { method: "POST", body: lines.splice(0).join("") });
    }
    posting = false;
  };
  const take = adapter(["h1"], (line) => (lines.push(line + "\\n"), posting || post()));
  new EventSource("/requests").onmessage = ({ data }) => take(data);
</script>`;

const root = join(import.meta.dirname, "..", "..");
const waiting = [];
let send = (line) => waiting.push(line);

const server = http.createServer((request, response) => {
  if (request.method === "POST") {
    request.pipe(process.stdout, { end: false });
    request.on("end", () => response.end());
  } else if (request.url === "/requests") {
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    send = (line) => response.write(`data: ${line}\n\n`);
    waiting.splice(0).forEach(send);
  } else if (request.url === "/") {
    response.writeHead(200, { "Content-Type": "text/html" }).end(page);
  } else {
    response.writeHead(200, { "Content-Type": "text/javascript" });
    createReadStream(join(root, new URL(request.url, "http://page").pathname)).on("error", () => response.end()).pipe(response);
  }
});

const profile = mkdtempSync(join(tmpdir(), "listwatch-"));
server.listen(0, "127.0.0.1", () => {
  const browser = spawn(process.env.LISTWATCH_BROWSER || "chromium", [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-web-security", `--user-data-dir=${profile}`, "--no-first-run", "--disable-extensions",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-breakpad", "--disable-dev-shm-usage",
    "--no-proxy-server", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--remote-debugging-port=0", `http://127.0.0.1:${server.address().port}/`,
  ], { detached: true, stdio: "ignore", env: { ...process.env, HOME: profile } });
  browser.on("exit", () => process.exit(1)); // unless it was killed at the end
  readline.createInterface({ input: process.stdin }).on("line", (line) => send(line)).on("close", () => {
    browser.removeAllListeners("exit").on("exit", () => {
      rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
      process.exit(0);
    });
    process.kill(-browser.pid, "SIGKILL"); // the browser has many processes
  });
});
