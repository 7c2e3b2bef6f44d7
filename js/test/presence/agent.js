// Is present until it is killed: node agent.js URL NAME
import { presence } from "../../listwatch.js";

const [url, name] = process.argv.slice(2);
presence(url + "/agents", { metadata: { name } }, { every: 500, onState: ({ state }) => console.log(state) });
