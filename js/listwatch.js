// The public names of the package; listwatch.d.ts documents them.
export { collection } from "./src/collection.js";
export { WatchError } from "./src/errors.js";
export { objects } from "./src/objects.js";
export { presence } from "./src/presence.js";
export { union } from "./src/union.js";
export { watch } from "./src/watch.js";
