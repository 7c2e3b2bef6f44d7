/**
 * Writes objects to a collection, and returns what happened. Each step depends on the server, so a
 * Go test compares the lines.
 *
 * @param {typeof import("../../listwatch.js").objects} objects
 * @param {string} url
 * @param {string} namespace the beginning of the keys, such as "default/", or ""
 */
export async function run(objects, url, namespace) {
  const things = objects(url);
  const lines = [];
  const step = async (name, promise) => {
    const result = await promise.then((thing) => `value ${thing?.spec?.value}`, (error) => `${error.code} ${error.status}`);
    lines.push(`${name}: ${result}`);
  };
  const key = `${namespace}a`;
  const metadata = { name: "a", ...(namespace && { namespace: namespace.slice(0, -1) }) };
  const thing = { apiVersion: "example.com/v1", kind: "Thing", metadata, spec: { value: 0 } };
  await step("create", things.create(thing));
  await step("create again", things.create(thing));
  const increment = (thing) => void thing.spec.value++;
  await Promise.all(Array.from({ length: 5 }, () => things.update(key, increment)));
  await step("five concurrent updates", things.get(key));
  await step("patch", things.patch(key, { spec: { value: 7 } }));
  await step("patch of an old version", things.patch(key, { metadata: { resourceVersion: "1" }, spec: { value: 8 } }));
  await step("delete an old version", things.delete(key, { resourceVersion: "1" }));
  const { resourceVersion } = (await things.get(key)).metadata;
  await step("delete", things.delete(key, { resourceVersion }));
  await step("get", things.get(key));
  await step("update", things.update(key, increment));
  return lines.join("\n");
}
