/** Sends the optimistic writes of a collection, and waits until the collection has their results. */
export class Writer {
  #objects;
  #follower;
  #sent = new Map(); // by key the newest write: a promise of the version that it was made from, and of its result

  constructor(objects, follower) {
    [this.#objects, this.#follower] = [objects, follower];
  }

  insert = (params) => this.#write(params, async ({ modified }) => this.#seen(await this.#objects.create(modified)));

  update = (params) => this.#write(params, async ({ key, original, modified }, resourceVersion) => {
    const patch = mergePatch(original, modified);
    if (resourceVersion) patch.metadata = { ...patch.metadata, resourceVersion };
    return this.#seen(await this.#objects.patch(key, patch));
  });

  delete = (params) => this.#write(params, async ({ key, original }) => {
    const { uid } = original.metadata;
    const seen = this.#follower.deleted(key); // its event may arrive before the response
    const object = await this.#objects.delete(key, uid && { uid });
    return object?.metadata?.deletionTimestamp ? this.#seen(object) : { seen }; // finalizers delay the deletion
  });

  #seen({ metadata: { resourceVersion } }) {
    return { version: resourceVersion, seen: this.#follower.reached(resourceVersion) };
  }

  /** Sends the mutations of a transaction. Those that succeed stay visible if others fail. */
  async #write({ transaction }, send) {
    const results = await Promise.allSettled(transaction.mutations.map((mutation) => this.#inTurn(transaction, mutation, send)));
    await Promise.all(results.map(({ value }) => value?.seen));
    for (const { reason } of results) if (reason) throw reason;
  }

  /**
   * Sends a mutation after the earlier ones of the same object. One that was made from the same
   * version as the one before, whose result had not arrived yet, continues from that result.
   */
  #inTurn(transaction, mutation, send) {
    const { key, original } = mutation;
    const from = original.metadata?.resourceVersion;
    const before = this.#sent.get(key);
    const sent = (async () => {
      const last = await before;
      if (transaction.state === "failed") throw new Error(`${key}: the transaction was rolled back before it was sent`);
      return { from, ...(await send(mutation, last?.version && last.from === from ? last.version : from)) };
    })();
    this.#sent.set(key, sent);
    sent.catch(() => this.#sent.get(key) === sent && this.#sent.delete(key));
    return sent;
  }
}

/** Returns the merge patch (RFC 7386) that turns one object into another. */
function mergePatch(from, to) {
  const patch = {};
  for (const name of new Set([...Object.keys(from), ...Object.keys(to)])) {
    const [a, b] = [from[name], to[name]];
    if (b === undefined) patch[name] = null;
    else if ([a, b].every((value) => typeof value === "object" && value && !Array.isArray(value))) {
      const inner = mergePatch(a, b);
      if (Object.keys(inner).length) patch[name] = inner;
    } else if (JSON.stringify(a) !== JSON.stringify(b)) patch[name] = b;
  }
  return patch;
}
