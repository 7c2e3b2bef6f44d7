// Runs the steps in Node.js: node node.js URL NAMESPACE PATCHES
import { objects } from "../../listwatch.js";
import { run } from "./steps.js";

const [url, namespace, patches] = process.argv.slice(2);
console.log(await run(objects, url, namespace, patches === "true"));
