// websocket.mjs [PACKAGE] URL: prints the messages of a watch, one per line, with the WebSocket of
// Node.js or of an npm package.
const [url, name] = process.argv.slice(2).reverse();
const { WebSocket } = name ? await import(name) : globalThis;
const socket = new WebSocket(url);
socket.onmessage = (message) => process.stdout.write(message.data.trim() + "\n");
socket.onerror = (event) => { throw event.error ?? new Error("the WebSocket failed"); };
socket.onclose = (event) => console.error(`closed with ${event.code} ${event.reason}`);
