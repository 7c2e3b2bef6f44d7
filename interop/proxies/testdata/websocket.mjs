// websocket.mjs URL: prints the messages of a watch, one per line, with Node's WebSocket.
const socket = new WebSocket(process.argv[2].replace(/^http/, "ws"));
socket.onmessage = (message) => process.stdout.write(message.data.trim() + "\n");
socket.onerror = (event) => { throw event.error ?? new Error("the WebSocket failed"); };
socket.onclose = (event) => console.error(`closed with ${event.code} ${event.reason}`);
