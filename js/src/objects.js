import { WatchError } from "./errors.js";
import { Requests, withDefaults } from "./requests.js";
import { sleep } from "./signals.js";

const defaults = { idleTimeout: 150_000, parse: JSON.parse, stringify: JSON.stringify };
const owned = ["labelSelector", "fieldSelector", "fields", "timeoutSeconds"]; // parameters of lists and watches

// The collection's path in the API of Kubernetes, with the namespace that it is limited to, and the plural.
const kubernetesPath = /\/(?:api|apis\/[^/]+)\/v[1-9]\d*(?:(?:alpha|beta)[1-9]\d*)?(?:\/namespaces\/([^/]+))?\/([^/]+)$/;

const maxTries = 100; // of an update, in case the server reports a conflict for every write

/** Reads and writes the objects of a collection; see listwatch.d.ts. */
export const objects = (url, options) => new Objects(url, options);

class Objects {
  #requests;
  #options;

  constructor(url, options) {
    this.#options = withDefaults(options, defaults);
    this.#requests = new Requests(url, this.#options);
  }

  get = async (key) => this.#send("GET", parseKey(key));

  create = async (object) => this.#send("POST", { namespace: object.metadata?.namespace }, object);

  update = async (key, change) => {
    for (let tries = 1; ; tries++) {
      const old = await this.get(key);
      const version = old.metadata?.resourceVersion;
      if (!version) throw new WatchError("Unsupported", "the object has no resourceVersion, which an update needs");
      const before = this.#options.stringify(old);
      const object = (await change(old)) ?? old;
      object.metadata = { ...object.metadata, resourceVersion: version };
      if (this.#options.stringify(object) === before) return object;
      try {
        return await this.#send("PUT", parseKey(key), object);
      } catch (error) {
        if (error.code !== "Conflict" || tries === maxTries) throw error;
      }
      // The first retry does not wait. Later ones wait a random time, so that writers that
      // conflicted do not meet again.
      if (tries > 1) await sleep(Math.random() * Math.min(10 * 2 ** tries, 1000), this.#options.signal);
    }
  };

  /** With preferences, a value of the header Prefer, the response may have no object. */
  patch = async (key, patch, type = "application/merge-patch+json", preferences) =>
    this.#send("PATCH", parseKey(key), patch, type, preferences);

  delete = async (key, preconditions) =>
    this.#send("DELETE", parseKey(key), preconditions && { kind: "DeleteOptions", apiVersion: "v1", preconditions });

  /** Returns the URL of an object or, without a name, the URL for new objects of a namespace. */
  #url({ namespace = "", name = "" }) {
    const url = this.#requests.url({});
    for (const parameter of owned) url.searchParams.delete(parameter);
    let path = url.pathname.replace(/\/$/, "");
    const parts = [namespace, name].filter(Boolean).map(encodeURIComponent);
    const [kubernetes, own, plural] = (!this.#options.plainPaths && kubernetesPath.exec(path)) || [];
    if (parts.some((part) => /^\.\.?$|%2F|%25/.test(part)) || (namespace && own && own !== parts[0])) {
      const limit = own ? `, and the URL is limited to the namespace ${own}` : "";
      throw new WatchError("Invalid", `key "${namespace}/${name}": the parts must not be . or .., nor contain / or %${limit}`);
    }
    if (kubernetes && namespace && own) parts.shift();
    else if (kubernetes && namespace) {
      path = path.slice(0, -plural.length) + "namespaces";
      parts.splice(1, 0, plural);
    }
    url.pathname = [path, ...parts].join("/");
    return url;
  }

  /** Sends a request and returns the object in the response, or undefined if a DELETE returns something else. */
  async #send(method, key, value, type, preferences) {
    const text = await this.#requests.exchange(method, this.#url(key), value && this.#options.stringify(value), type, preferences);
    if (preferences && !text) return undefined;
    let object;
    try {
      object = this.#options.parse(text);
    } catch (cause) {
      if (method !== "DELETE") throw new WatchError("Corrupt", "the response is not JSON", { cause });
    }
    return object?.kind === "Status" && method === "DELETE" ? undefined : object;
  }
}

/** Returns the parts of a key, such as "name" or "namespace/name". */
function parseKey(key) {
  const [, namespace, name] = /^(?:([^/]+)\/)?([^/]+)$/.exec(key) ?? [];
  if (!name) throw new WatchError("Invalid", `key ${JSON.stringify(key)}: must be NAME or NAMESPACE/NAME`);
  return { namespace, name };
}
