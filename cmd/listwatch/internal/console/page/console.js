import { collection } from "./js/listwatch.js";
import { parse } from "./metrics.js";
import { Plot } from "./plot.js";
import { bytes, fill, number, seconds, sortable } from "./table.js";
import { measure } from "./waste.js";

const at = (id) => document.getElementById(id);

const plots = at("plots");
const eventRate = new Plot(plots, "events per second", number);
const lag = new Plot(plots, "lag, 99 %", seconds);
const openWatches = new Plot(plots, "open watches", number);

// resourceOf returns the name of the resource that labels name.
const resourceOf = ({ group, version, resource }) => [resource, version, group].filter(Boolean).join(".");

// byResource returns a row for each resource that a metric has samples of.
function byResource(metrics, name) {
  return [...new Map(metrics.samples(name).map(({ labels: { group, version, resource } }) => {
    const labels = { group, version, resource };
    return [resourceOf(labels), { name: resourceOf(labels), of: (name) => metrics.sum(name, labels), labels }];
  })).values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

function showCollections(now, earlier) {
  fill(at("collections"), [
    ["resource", (r) => r.name],
    ["objects", (r) => number(r.of("objects")) + (r.of("objects_expiring") > 0 ? `, ${number(r.of("objects_expiring"))} with a TTL` : "")],
    ["size", (r) => bytes(r.of("object_bytes"))],
    ["changes in the log", (r) => number(r.of("history_writes"))],
    ["the log reaches back", (r) => seconds(r.of("history_age_seconds"))],
    ["log and cache", (r) => bytes((r.of("history_bytes") ?? 0) + (r.of("frame_cache_bytes") ?? 0))],
    ["watches", (r) => number(r.of("watches") ?? 0)],
    ["events/s", (r) => number(now.rate("watch_events_total", earlier, r.labels))],
    ["behind", (r) => number(r.of("watches_behind") ?? 0)],
    ["stalled", (r) => number(r.of("watches_stalled") ?? 0)],
  ], byResource(now, "objects").filter((r) => r.of("objects") > 0 || r.of("watches") > 0));
}

const limits = [
  ["watches", "watches", "watches_limit", number],
  ["requests", "request_seats", "request_seats_limit", number],
  ["writes", "writes_executing", "writes_executing_limit", number],
  ["memory for requests", "request_memory_bytes", "request_memory_limit_bytes", bytes],
  ["memory for objects and logs", "stored_memory_bytes", "stored_memory_limit_bytes", bytes],
];

function showLimits(now) {
  const rows = limits.map(([name, used, limit, format]) => ({ name, used: now.sum(used) ?? 0, limit: now.sum(limit), format }))
    .filter((r) => r.limit !== undefined)
    .map((r) => ({ ...r, near: r.used > 0.8 * r.limit }));
  fill(at("limits"), [
    ["limit", (r) => r.name],
    ["used", (r) => r.format(r.used)],
    ["of", (r) => r.format(r.limit)],
    ["share", (r) => (r.used > 0 && r.used < r.limit / 100 ? "below 1 %" : `${Math.round((100 * r.used) / r.limit)} %`)],
  ], rows);
  const refused = now.samples("requests_refused_total").map(({ labels, value }) => ({ ...labels, value }));
  fill(at("refused"), [["status", (r) => r.code], ["limit", (r) => r.reason || "–"], ["requests", (r) => number(r.value)]],
    refused.sort((a, b) => b.value - a.value).slice(0, 10));
}

function showStore(now, earlier) {
  const commit = (q) => seconds(now.quantile("store_commit_duration_seconds", q, earlier));
  const rows = [
    ["commits/s", number(now.rate("store_commit_duration_seconds_count", earlier))],
    ["a commit takes, 50 %", commit(0.5)],
    ["a commit takes, 99 %", commit(0.99)],
    ["failed commits", number(now.sum("store_commit_failures_total"))],
    ["file", bytes(now.sum("store_file_bytes"))],
    ["free in the file", bytes(now.sum("store_file_free_bytes"))],
    ["healthy members of etcd", now.sum("etcd_members") && `${now.sum("etcd_healthy_members")} of ${now.sum("etcd_members")}`],
    ["versions behind etcd", number(now.sum("etcd_lag_versions"))],
  ];
  fill(at("store"), [["measure", (r) => r[0]], ["value", (r) => r[1]]], rows.filter(([, value]) => value !== undefined));
  fill(at("relays"), [
    ["relay", (r) => r.name],
    ["ready", (r) => (r.of("relay_ready") ? "yes" : "no")],
    ["lag", (r) => seconds(r.of("relay_lag_seconds"))],
    ["versions behind", (r) => number(r.of("relay_lag_versions"))],
    ["upstream silent for", (r) => seconds(r.of("relay_silence_seconds"))],
  ], byResource(now, "relay_ready"));
}

// ageOf returns the seconds since a time in RFC 3339.
const ageOf = (time) => Math.max(0, (Date.now() - Date.parse(time)) / 1000);

const watchColumns = [
  ["id", (w) => w.id, (w) => w.id],
  ["client", (w) => w.client, (w) => w.client],
  ["user", (w) => w.user, (w) => w.user ?? ""],
  ["path", (w) => w.path, (w) => w.path],
  ["transport", (w) => [w.transport, w.mediaType, w.compression].filter(Boolean).join(" "), (w) => w.transport],
  ["open for", (w) => seconds(ageOf(w.opened)), (w) => ageOf(w.opened)],
  ["events", (w) => number(w.events), (w) => w.events],
  ["sent", (w) => bytes(w.bytes), (w) => w.bytes],
  ["version", (w) => w.resourceVersion, (w) => BigInt(w.resourceVersion)],
  ["state", stateOf, stateOf],
  ["action", () => "end", undefined],
  ["received in vain", () => "measure", undefined],
];

function stateOf(w) {
  if (w.writing > 1e9) return `stalled for ${seconds(w.writing / 1e9)}`;
  return w.caughtUp ? "up to date" : "behind";
}

let watches = [];
const order = sortable(at("watches"), watchColumns, watchColumns.map(([, , value]) => value), showWatches);
const most = 500; // rows

// confirm resolves to whether the user confirms the question.
function confirm(question) {
  at("question").textContent = question;
  at("confirm").showModal();
  return new Promise((resolve) => {
    at("cancel").onclick = () => at("confirm").close();
    at("confirmed").onclick = () => (resolve(true), at("confirm").close());
    at("confirm").onclose = () => resolve(false); // also after Escape
  });
}

const ending = new Set(); // the ids of the watches that are being ended

// buttons holds the buttons of a watch, by their text.
const buttons = {
  end: {
    key: (w) => w.id,
    label: (w) => `end watch ${w.id} of ${w.client}, ${w.path}`,
    disabled: (w) => ending.has(w.id),
    press: end,
  },
  measure: {
    key: (w) => `measure ${w.id}`,
    label: (w) => `measure what watch ${w.id} of ${w.client}, ${w.path}, receives in vain`,
    disabled: () => false,
    press: (w) => (at("path").value = w.path, at("source").requestSubmit(at("measure")), at("measure").focus()),
  },
};

async function end(watch) {
  if (!(await confirm(`End watch ${watch.id} of ${watch.client}, ${watch.path}? A client that resumes opens it again.`))) return;
  ending.add(watch.id);
  showWatches();
  const response = await fetch(`/debug/watches/${watch.id}/end`, { method: "POST" });
  if (response.ok) return;
  ending.delete(watch.id);
  at("count").textContent = `watch ${watch.id} could not be ended: status ${response.status}`;
}

function showWatches() {
  const wanted = at("filter").value.toLowerCase();
  const found = order(watches.filter((w) => [w.client, w.user, w.path, w.transport, w.mediaType].join(" ").toLowerCase().includes(wanted)));
  at("count").textContent = `${number(found.length)} of ${number(watches.length)}` + (found.length > most ? `, the first ${most}` : "");
  const columns = watchColumns.map(([title, text, value]) => (value ? [title, text] : [title, text, buttons[text()]]));
  fill(at("watches"), columns, found.slice(0, most));
}

async function get(url) {
  const response = await fetch(url, { signal: AbortSignal.timeout(5000) });
  if (!response.ok) throw new Error(`GET ${url}: status ${response.status}`);
  return response;
}

function show(now, earlier) {
  eventRate.add(now.rate("watch_events_total", earlier));
  lag.add(now.quantile("watch_lag_seconds", 0.99, earlier));
  openWatches.add(now.sum("watches") ?? 0);
  showCollections(now, earlier);
  showLimits(now);
  showStore(now, earlier);
  const status = at("status");
  status.className = "live";
  status.textContent = now.sum("draining") ? "draining" : "live";
}

async function poll() {
  for (let earlier; ; await new Promise((resolve) => setTimeout(resolve, 1000))) {
    try {
      const now = parse(await (await get("/metrics")).text());
      if (earlier) show(now, earlier);
      earlier = now;
      ({ watches } = await (await get("/debug/watches")).json());
      showWatches();
    } catch (error) {
      at("status").className = "";
      at("status").textContent = error.message;
    }
  }
}

let followed;

function submit(event) {
  event.preventDefault();
  const url = new URL(at("path").value, at("api").value), token = at("token").value;
  if (event.submitter !== at("measure")) return follow(url, token);
  measure({ url, token, seconds: at("seconds").value, table: at("waste"), status: at("waste-status") });
}

function follow(url, token) {
  followed?.close();
  followed = collection(url, {
    headers: () => (token ? { Authorization: `Bearer ${token}` } : {}),
    transports: ["fetch"],
  });
  followed.subscribe((snapshot) => {
    at("objects-status").textContent = `${number(snapshot.size)}, ${snapshot.error?.message ?? snapshot.status}`;
    const newest = [...snapshot.values()].map(({ metadata }) => metadata)
      .sort((a, b) => Number(BigInt(b.resourceVersion) - BigInt(a.resourceVersion))).slice(0, 50);
    fill(at("objects"), [["namespace", (m) => m.namespace], ["name", (m) => m.name], ["version", (m) => m.resourceVersion]], newest);
  });
}

at("filter").oninput = showWatches;
at("source").onsubmit = submit;
for (const url of await (await get("api")).json()) at("api").append(new Option(url));
poll();
