// http.mjs URL: prints the decompressed text of a watch as it arrives, with http and zlib.
import http from "node:http";
import zlib from "node:zlib";

const headers = { Accept: "text/event-stream", "Accept-Encoding": "gzip" };
http.get(process.argv[2], { headers }, (response) => {
  response.pipe(zlib.createGunzip({ flush: zlib.constants.Z_SYNC_FLUSH })).pipe(process.stdout);
});
