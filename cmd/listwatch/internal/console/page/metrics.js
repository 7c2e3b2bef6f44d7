// Reads the text format of Prometheus.

const line = /^(\w+)(?:\{(.*)\})? (\S+)/;
const label = /(\w+)="((?:[^"\\]|\\.)*)"/g;

// parse returns the samples of each metric: { labels, value }.
export function parse(text) {
  const metrics = new Map();
  for (const row of text.split("\n")) {
    const match = line.exec(row);
    if (!match) continue;
    const labels = {};
    for (const [, name, value] of (match[2] ?? "").matchAll(label)) labels[name] = value.replace(/\\(.)/g, (_, c) => (c === "n" ? "\n" : c));
    const samples = metrics.get(match[1]) ?? [];
    samples.push({ labels, value: match[3] === "+Inf" ? Infinity : Number(match[3]) });
    metrics.set(match[1], samples);
  }
  return new Metrics(metrics, performance.now());
}

class Metrics {
  constructor(metrics, time) {
    this.metrics = metrics;
    this.time = time; // in milliseconds
  }

  samples(name) {
    return this.metrics.get("listwatch_" + name) ?? [];
  }

  // sum adds up the samples whose labels contain labels. It is undefined if there are none.
  sum(name, labels = {}) {
    const samples = this.samples(name).filter((s) => Object.entries(labels).every(([k, v]) => s.labels[k] === v));
    return samples.length === 0 ? undefined : samples.reduce((total, s) => total + s.value, 0);
  }

  // rate returns how much a counter has grown in each second since earlier.
  rate(name, earlier, labels) {
    return Math.max(0, (this.sum(name, labels) ?? 0) - (earlier.sum(name, labels) ?? 0)) / ((this.time - earlier.time) / 1000);
  }

  // quantile returns the upper bound of the bucket of a histogram that contains the quantile q of
  // what was observed since earlier, or undefined if nothing was.
  quantile(name, q, earlier) {
    const buckets = new Map();
    for (const [metrics, sign] of [[this, 1], [earlier, -1]]) {
      for (const { labels, value } of metrics.samples(name + "_bucket")) {
        const le = labels.le === "+Inf" ? Infinity : Number(labels.le);
        buckets.set(le, (buckets.get(le) ?? 0) + sign * value);
      }
    }
    const bounds = [...buckets.keys()].sort((a, b) => a - b);
    const total = buckets.get(Infinity) ?? 0;
    return total > 0 ? bounds.find((le) => buckets.get(le) >= q * total) : undefined;
  }
}
