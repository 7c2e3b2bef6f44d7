/**
 * A fetch over Node's http module, for streams. Node's own fetch reports a stream that was cut off
 * as one that has ended. It follows no redirects, and a body is a string.
 */
export function nodeFetch(url, { method, headers, body: sent, signal }) {
  const module = (name) => globalThis.process.getBuiltinModule(name);
  const { request: send } = module(new URL(url).protocol === "https:" ? "node:https" : "node:http");
  // Without this header Node.js sends the body of a DELETE as the beginning of the next request.
  if (sent) headers = { ...headers, "Content-Length": new TextEncoder().encode(sent).length };
  return new Promise((resolve, reject) => {
    const request = send(url, { method, headers, signal }, (response) => {
      const { statusCode: status, headersDistinct } = response;
      const body = [204, 205, 304].includes(status) ? null : module("node:stream").Readable.toWeb(response);
      const pairs = Object.entries(headersDistinct).flatMap(([name, values]) => values.map((value) => [name, value]));
      try {
        // A Response refuses the statuses above 599 that a server may send.
        const { headers, ok } = new Response(null, { status: Math.min(status, 599), headers: pairs });
        resolve({ status, ok, headers, body, text: () => new Response(body).text() });
      } catch (error) {
        request.destroy();
        reject(error); // thrown here, it would end the process
      }
    });
    request.on("error", reject);
    request.end(sent);
  });
}
