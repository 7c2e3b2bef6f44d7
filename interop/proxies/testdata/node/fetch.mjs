// fetch.mjs URL: prints the decompressed text of a watch as it arrives, with fetch.
const response = await fetch(process.argv[2], { headers: { Accept: "text/event-stream" } });
for await (const part of response.body) process.stdout.write(part);
