// listwatch conformance client --exec 'node js/test/conformance/node.js'
import readline from "node:readline";
import { adapter } from "./adapter.js";

readline.createInterface({ input: process.stdin })
  .on("line", adapter(["h1"], (line) => process.stdout.write(line + "\n")))
  .on("close", () => process.exit(0));
