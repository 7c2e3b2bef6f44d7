// listwatch conformance client --exec 'node js/test/conformance/node.js'
import https from "node:https";
import readline from "node:readline";
import { adapter } from "./adapter.js";

const trust = (ca) => (https.globalAgent.options.ca = ca);

readline.createInterface({ input: process.stdin })
  .on("line", adapter(["h1", "tls"], (line) => process.stdout.write(line + "\n"), trust))
  .on("close", () => process.exit(0));
