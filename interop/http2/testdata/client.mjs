// client.mjs URL: sends the exchanges on standard input over one connection of HTTP/2, and prints a
// line with the result of each.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import http2 from "node:http2";
import { Readable } from "node:stream";

const exchanges = JSON.parse(readFileSync(0, "utf8"));
const session = http2.connect(process.argv[2], { rejectUnauthorized: false, settings: { initialWindowSize: 1 << 20 } });
const period = Buffer.from(Array.from({ length: 251 * 256 }, (_, i) => i % 251));

// pattern generates a body, and calls progress for each part.
function* pattern(length, progress) {
  for (; length > 0; length -= period.length) {
    progress();
    yield period.subarray(0, length);
  }
}

function withoutDate(headers) {
  const fields = Object.entries(headers).filter(([name]) => name !== "date" && !name.startsWith(":"));
  return Object.fromEntries(fields.map(([name, value]) => [name, String(value)]));
}

function send(exchange) {
  const { name, method, path, header, body, trailer } = exchange;
  const result = { name, status: 0, early: [], header: {}, length: 0, trailer: {}, error: "" };
  const sum = createHash("sha256");
  const length = trailer ? { trailer: "sum" } : body ? { "content-length": body } : {};
  const options = { waitForTrailers: trailer, endStream: !body };
  const stream = session.request({ ":method": method, ":path": path, ...length, ...header }, options);
  return new Promise((resolve) => {
    stream.on("headers", (headers) => result.early.push(headers[":status"]));
    stream.on("response", (headers) => {
      result.status = headers[":status"];
      result.header = withoutDate(headers);
    });
    stream.on("data", (data) => {
      late.refresh();
      sum.update(data);
      result.length += data.length;
    });
    stream.on("trailers", (headers) => (result.trailer = withoutDate(headers)));
    stream.on("wantTrailers", () => stream.sendTrailers({ sum: "42" }));
    stream.on("error", (error) => (result.error = error.message));
    const end = () => {
      clearTimeout(late);
      resolve({ ...result, sum: sum.copy().digest("hex") });
    };
    const late = setTimeout(() => {
      result.error = "the stream does not close";
      end();
    }, 5_000);
    stream.on("close", end);
    if (body) Readable.from(pattern(body, () => late.refresh())).pipe(stream);
  });
}

for (const exchange of exchanges) console.log(JSON.stringify(await send(exchange)));
session.destroy();
