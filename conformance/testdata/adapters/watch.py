"""A client under test: Python's http.client with the control hook of docs/conformance-hook.md.

    listwatch conformance client --exec 'python3 conformance/testdata/adapters/watch.py'
"""
import codecs, http.client, json, socket, sys, threading, urllib.parse

lock, sockets = threading.Lock(), {}

def reply(**line):
    with lock:
        print(json.dumps(line, allow_nan=False), flush=True)

def events(response):
    """Yields the JSON values of a stream, however it is split into chunks and lines."""
    text, utf8, decoder = "", codecs.getincrementaldecoder("utf-8")(), json.JSONDecoder()
    while chunk := response.read1(1 << 16):  # raises IncompleteRead if the last chunk is missing
        text = (text + utf8.decode(chunk)).lstrip()
        while text:
            try:
                event, length = decoder.raw_decode(text)
            except ValueError:
                break  # the value is incomplete
            yield event
            text = text[length:].lstrip()
    if text:
        raise EOFError("the stream ended within an event")

def watch(id, url, headers=None, **_):
    u = urllib.parse.urlsplit(url)
    try:
        connection = http.client.HTTPConnection(u.netloc)
        connection.connect()
        sockets[id] = connection.sock
        connection.request("GET", f"{u.path}?{u.query}", headers={"Accept": "application/json", **(headers or {})})
        response = connection.getresponse()
        if response.status != 200:
            body = response.read().decode(errors="replace")
            return reply(id=id, status=response.status, body=json.loads(body) if body.startswith("{") else body)
        reply(id=id, status=200, headers=dict(response.getheaders()))
        for event in events(response):
            reply(id=id, event=event)
        reply(id=id, end=True)
    except (OSError, ValueError, http.client.HTTPException) as e:
        reply(id=id, error=f"{type(e).__name__}: {e}")
    except EOFError as e:
        reply(id=id, error=str(e), within=True)

reply(can=["h1"])
for line in sys.stdin:
    request = json.loads(line)
    if "watch" in request:
        threading.Thread(target=watch, kwargs=request["watch"], daemon=True).start()
    elif (s := sockets.pop(request["close"]["id"], None)) is not None:
        try:
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # already closed
