// Prints what watchers in Node.js see: node node.js URL
import { watch } from "../../listwatch.js";
import { follow } from "./watchers.js";

follow(watch, process.argv[2], ["fetch"], (line) => console.log(line));
