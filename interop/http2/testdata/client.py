"""client.py URL: sends the exchanges on standard input over one connection, with the library h2,
and prints a line with the result of each."""
import hashlib
import json
import socket
import ssl
import sys
import urllib.parse

import h2.config
import h2.connection
import h2.events

address = urllib.parse.urlsplit(sys.argv[1])
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
context.set_alpn_protocols(["h2"])
tcp = socket.create_connection((address.hostname, address.port))
tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # the last part of a window must not wait for an ACK
sock = context.wrap_socket(tcp)
conn = h2.connection.H2Connection(config=h2.config.H2Configuration(header_encoding="utf-8"))
conn.initiate_connection()
sock.sendall(conn.data_to_send())
period = bytes(i % 251 for i in range(251 * 256))


def fields(headers):
    joined = {}
    for name, value in headers:
        if name != "date" and not name.startswith(":"):
            joined[name] = joined[name] + ", " + value if name in joined else value
    return joined


def send(exchange):
    """Sends the request, reads the response, and returns the result."""
    result = {"name": exchange["name"], "status": 0, "early": [], "header": {}, "length": 0, "trailer": {}, "error": ""}
    total = hashlib.sha256()
    stream = conn.get_next_available_stream_id()
    left, trailer = exchange["body"], exchange["trailer"]
    body = memoryview(period * (left // len(period) + 1))[:left]  # slices of it copy nothing
    headers = {":method": exchange["method"], ":scheme": "https", ":authority": address.netloc, ":path": exchange["path"]}
    headers.update(exchange["header"] or {})
    if trailer:
        headers["trailer"] = "sum"
    elif left:
        headers["content-length"] = str(left)
    conn.send_headers(stream, list(headers.items()), end_stream=left == 0)
    sent, received, reset = left == 0, False, False
    while not reset and not (sent and received):
        while not sent:
            n = min(left, conn.local_flow_control_window(stream), conn.max_outbound_frame_size)
            if n == 0 and left:
                break
            data, body, left = body[:n], body[n:], left - n
            conn.send_data(stream, data, end_stream=left == 0 and not trailer)
            if left == 0:
                sent = True
                if trailer:
                    conn.send_headers(stream, [("sum", "42")], end_stream=True)
        sock.sendall(conn.data_to_send())
        for event in conn.receive_data(sock.recv(1 << 16)):
            if isinstance(event, h2.events.InformationalResponseReceived):
                result["early"].append(int(dict(event.headers)[":status"]))
            elif isinstance(event, h2.events.ResponseReceived):
                result["status"] = int(dict(event.headers)[":status"])
                result["header"] = fields(event.headers)
            elif isinstance(event, h2.events.DataReceived):
                total.update(event.data)
                result["length"] += len(event.data)
                conn.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, h2.events.TrailersReceived):
                result["trailer"] = fields(event.headers)
            elif isinstance(event, h2.events.StreamEnded):
                received = True
            elif isinstance(event, h2.events.StreamReset):
                reset = True
                result["error"] = str(event.error_code or "")  # NO_ERROR stops only the request
            elif isinstance(event, h2.events.ConnectionTerminated):
                raise SystemExit(f"{exchange['name']}: the server has ended the connection: {event}")
    sock.sendall(conn.data_to_send())
    return {**result, "sum": total.hexdigest()}


for e in json.load(sys.stdin):
    print(json.dumps(send(e)), flush=True)
