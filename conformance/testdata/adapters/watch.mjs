// A client under test: Node's http module with the control hook of docs/conformance-hook.md.
//
//	listwatch conformance client --exec 'node conformance/testdata/adapters/watch.mjs'
import http from "node:http";
import readline from "node:readline";

const reply = (line) => process.stdout.write(JSON.stringify(line) + "\n");
const requests = new Map();

// splitter calls found with every JSON object of a stream, however it is split into chunks and lines.
function splitter(found) {
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
        found(JSON.parse(text.slice(0, at + 1)));
        [text, at] = [text.slice(at + 1), -1];
      }
    }
    return text.trim() === "";
  };
}

function watch({ id, url, headers }) {
  const request = http.get(url, { agent: false, headers: { Accept: "application/json", ...headers } }, (response) => {
    const { statusCode: status } = response, parts = [];
    const split = splitter((event) => reply({ id, event }));
    let whole = true;
    response.setEncoding("utf8");
    if (status === 200) reply({ id, status, headers: response.headers });
    response.on("data", (part) => status === 200 ? whole = split(part) : parts.push(part));
    response.on("error", (e) => reply({ id, error: e.message, within: !whole }));
    response.on("end", () => {
      const text = parts.join("");
      if (status !== 200) reply({ id, status, body: text.startsWith("{") ? JSON.parse(text) : text });
      else reply(whole ? { id, end: true } : { id, error: "the stream ended within an event", within: true });
    });
  });
  request.on("error", (e) => reply({ id, error: e.message }));
  requests.set(id, request);
}

reply({ can: ["h1"] });
readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const { watch: w, close } = JSON.parse(line);
  if (w) watch(w);
  else requests.get(close.id)?.destroy();
}).on("close", () => process.exit(0));
