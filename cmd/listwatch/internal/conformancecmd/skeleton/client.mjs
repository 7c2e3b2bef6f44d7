// A client under test: Node's http module with the control hook of docs/conformance-hook.md.
//
//	listwatch conformance client --exec 'node adapter.mjs' --known-failures known_failures.txt
//
// Replace get and splitter by your client.
import http from "node:http";
import readline from "node:readline";

const reply = (line) => process.stdout.write(JSON.stringify(line) + "\n");
const requests = new Map();

// splitter calls found with every JSON object of a stream, however it is split into chunks and lines.
function splitter(limit, found) {
  const maxDepth = 1000;
  let text = "", at = 0, depth = 0, quoted = false;
  return (chunk) => {
    for (text += chunk; at < text.length; at++) {
      const c = text[at];
      if (quoted) {
        if (c === "\\") at++;
        else if (c === '"') quoted = false;
      } else if (c === '"') quoted = true;
      else if (c === "{" || c === "[") depth++;
      else if ((c === "}" || c === "]") && --depth === 0) {
        if (at >= limit) break;
        found(JSON.parse(text.slice(0, at + 1)));
        [text, at] = [text.slice(at + 1), -1];
      }
      if (depth > maxDepth) throw new Error("an event is nested too deeply");
    }
    if (text.length > limit) throw new Error(`an event has more than ${limit} characters`);
    return text.trim() === "";
  };
}

// get follows redirects, without the headers if they lead to another server.
function get(id, url, headers, redirects, done) {
  const request = http.get(url, { agent: false, headers: { Accept: "application/json", ...headers } }, (response) => {
    if (![301, 302, 303, 307, 308].includes(response.statusCode)) return done(response, request);
    if (redirects === 0) return request.destroy(new Error("too many redirects"));
    const target = new URL(response.headers.location, url);
    get(id, target, target.origin === new URL(url).origin ? headers : {}, redirects - 1, done);
    response.resume();
  });
  request.on("error", (e) => reply({ id, error: e.message }));
  requests.set(id, request);
}

function watch({ id, url, headers = {}, limit = 16 << 20 }) {
  get(id, url, headers, 10, (response, request) => {
    const { statusCode: status } = response, parts = [];
    const split = splitter(limit, (event) => reply({ id, event }));
    let whole = true, corrupt = false;
    response.setEncoding("utf8");
    if (status === 200) reply({ id, status, headers: response.headers });
    response.on("data", (part) => {
      if (status !== 200) return parts.push(part);
      try {
        whole = corrupt || split(part);
      } catch (e) {
        corrupt = true;
        reply({ id, error: e.message, code: "Corrupt" });
        request.destroy();
      }
    });
    response.on("error", (e) => corrupt || reply({ id, error: e.message, within: !whole }));
    response.on("end", () => {
      const text = parts.join("");
      if (status !== 200) reply({ id, status, body: text.startsWith("{") ? JSON.parse(text) : text });
      else reply(whole ? { id, end: true } : { id, error: "the stream ended within an event", within: true });
    });
  });
}

reply({ can: ["h1"] });
readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const { watch: w, close } = JSON.parse(line);
  if (w) watch(w);
  else requests.get(close.id)?.destroy();
}).on("close", () => process.exit(0));
