// Follows two collections as one watch, and writes a line after each change: node node.js URL
import { union } from "../../listwatch.js";

const parts = ["/nodes", "/pods"];
const all = union(`${process.argv[2]}/watch`, parts.map((url) => ({ url, key: ({ metadata }) => metadata.name })), { transports: ["fetch"], conflate: 200 });
const show = (c) => [...c].map(([name, { spec }]) => `${name}=${spec.value}`).join(" ");
for (const c of all) c.subscribe(() => all.every(({ status }) => status === "live") && console.log(all.map(show).join(" | ")));
