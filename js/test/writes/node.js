// Runs the steps in Node.js: node node.js URL NAMESPACE
import { objects } from "../../listwatch.js";
import { run } from "./steps.js";

const [url, namespace] = process.argv.slice(2);
console.log(await run(objects, url, namespace));
