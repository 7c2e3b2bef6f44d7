/**
 * Watches a collection and its relay over each transport, and reports a line for each event.
 *
 * @param {typeof import("../../listwatch.js").watch} watch
 * @param {string} base the beginning of the URLs
 * @param {string[]} transports
 * @param {(line: string) => void} report
 */
export function follow(watch, base, transports, report) {
  for (const path of ["/agents", "/relay"]) {
    for (const transport of transports) run(watch(base + path, { transports: [transport] }), `${path} ${transport}`, report);
  }
}

async function run(events, name, report) {
  for await (const { type, object } of events) report([name, type, object.metadata.name].filter(Boolean).join(" "));
}
