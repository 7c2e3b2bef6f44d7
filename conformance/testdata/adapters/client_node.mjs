// A client under test: Watch of @kubernetes/client-node with the control hook of
// docs/conformance-hook.md.
//
//	npm install @kubernetes/client-node@2.0.1
//	listwatch conformance client --exec 'node client_node.mjs'
import { createRequire } from "node:module";
import { join } from "node:path";
import readline from "node:readline";

const { KubeConfig, Watch } = await import(createRequire(join(process.cwd(), "x")).resolve("@kubernetes/client-node"));
const reply = (line) => process.stdout.write(JSON.stringify(line) + "\n");
const watches = new Map();

async function watch({ id, url, headers = {} }) {
  const { origin, pathname, searchParams } = new URL(url);
  const config = new KubeConfig();
  const token = headers.Authorization?.replace("Bearer ", "");
  config.loadFromClusterAndUser({ name: "c", server: origin, skipTLSVerify: true }, { name: "u", token });
  searchParams.delete("watch"); // the library sets it
  let open = false;
  const opened = () => {
    if (!open) reply({ id, status: 200, headers: {} }); // the library shows no headers
    open = true;
  };
  const event = (type, object, text) => {
    opened();
    reply({ id, event: text ?? { type, object } });
  };
  const done = (e) => {
    const status = Number(e?.statusCode ?? e?.code);
    if (status >= 300 && !open) return reply({ id, status, body: e.body ?? e.message });
    opened();
    reply(e && e.name !== "AbortError" ? { id, error: e.message } : { id, end: true });
  };
  const params = Object.fromEntries(searchParams);
  const controller = await new Watch(config).watch(pathname, params, event, done).catch(done);
  if (!controller) return;
  opened();
  watches.set(id, controller);
}

reply({ can: ["h1"] });
readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const { watch: w, close } = JSON.parse(line);
  if (w) watch(w);
  else watches.get(close.id)?.abort();
}).on("close", () => process.exit(0));
