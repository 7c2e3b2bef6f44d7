import { bytes, fill, number } from "./table.js";

const share = (part, whole) => (whole ? `${((100 * part) / whole).toFixed(1)} %` : undefined);
const amount = ({ events, bytes: size }) => `${number(events)}, ${bytes(size)}`;

let running = false;

// measure watches the collection at url for some seconds. It shows in table what the watch would
// have saved with each parameter, and the progress in status.
export async function measure({ url, seconds, token, table, status }) {
  if (running) return;
  running = true;
  status.textContent = `measuring ${url.pathname} for ${seconds} s`;
  try {
    const response = await fetch(`waste?${new URLSearchParams({ url, seconds })}`, { headers: token ? { Authorization: `Bearer ${token}` } : {} });
    const report = await response.json();
    if (!response.ok) throw new Error(report.message);
    const { initial, changes, savings } = report;
    status.textContent = `${url.pathname}: changes in ${seconds} s: ${amount(changes)}; initial events: ${amount(initial)} of JSON`;
    fill(table, [
      ["parameter", (s) => s.parameter],
      ["saves events", (s) => share(s.changes.events, changes.events)],
      ["bytes", (s) => share(s.changes.bytes, changes.bytes)],
      ["initial bytes", (s) => share(s.initial.bytes, initial.bytes)],
    ], savings ?? []);
  } catch (error) {
    status.textContent = `${url.pathname}: ${error.message}`;
  } finally {
    running = false;
  }
}
