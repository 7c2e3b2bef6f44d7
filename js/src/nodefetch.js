/**
 * A fetch over Node's http module, for streams. Node's own fetch reports a stream that was cut off
 * as one that has ended. It follows no redirects.
 */
export function nodeFetch(url, { headers, signal }) {
  const module = (name) => globalThis.process.getBuiltinModule(name);
  const { get } = module(new URL(url).protocol === "https:" ? "node:https" : "node:http");
  return new Promise((resolve, reject) => {
    const request = get(url, { headers, signal }, (response) => {
      const { statusCode: status, headersDistinct } = response;
      const body = [204, 205, 304].includes(status) ? null : module("node:stream").Readable.toWeb(response);
      const pairs = Object.entries(headersDistinct).flatMap(([name, values]) => values.map((value) => [name, value]));
      resolve(new Response(body, { status, headers: pairs }));
    });
    request.on("error", reject);
  });
}
