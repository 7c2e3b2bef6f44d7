"""An adapter for listwatch conformance: Python's http.client with the control hook of docs/conformance-hook.md.

    listwatch conformance client --exec 'python3 adapter.py' --known-failures known_failures.txt

Replace get and events by your client.
"""
import codecs, http.client, json, socket, sys, threading, urllib.parse

lock, sockets = threading.Lock(), {}

class Corrupt(Exception):
    """The server violates the protocol or a limit."""

def reply(**line):
    with lock:
        print(json.dumps(line, allow_nan=False), flush=True)

def events(response, limit):
    """Yields the JSON values of a stream, however it is split into chunks and lines."""
    text, utf8, decoder = "", codecs.getincrementaldecoder("utf-8")(), json.JSONDecoder()
    while chunk := response.read1(1 << 16):  # raises IncompleteRead if the last chunk is missing
        text = (text + utf8.decode(chunk)).lstrip()
        while text:
            try:
                event, length = decoder.raw_decode(text)
            except ValueError:
                event, length = None, len(text)  # the value is incomplete
            except RecursionError:
                raise Corrupt("an event is nested too deeply")
            if length > limit:
                raise Corrupt(f"an event has more than {limit} characters")
            if event is None:
                break
            yield event
            text = text[length:].lstrip()
    if text:
        raise EOFError("the stream ended within an event")

def get(id, url, headers, redirects=10):
    """Follows redirects, without the headers if they lead to another server."""
    u = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(u.netloc)
    connection.connect()
    sockets[id] = connection.sock
    connection.request("GET", f"{u.path}?{u.query}", headers={"Accept": "application/json", **headers})
    response = connection.getresponse()
    if response.status not in (301, 302, 303, 307, 308):
        return response
    if redirects == 0:
        raise OSError("too many redirects")
    target = urllib.parse.urljoin(url, response.headers["Location"])
    same = urllib.parse.urlsplit(target).netloc == u.netloc
    return get(id, target, headers if same else {}, redirects - 1)

def watch(id, url, headers={}, limit=16 << 20, **_):
    try:
        response = get(id, url, headers)
        if response.status != 200:
            body = response.read().decode(errors="replace")
            return reply(id=id, status=response.status, body=json.loads(body) if body.startswith("{") else body)
        reply(id=id, status=200, headers=dict(response.getheaders()))
        for event in events(response, limit):
            reply(id=id, event=event)
        reply(id=id, end=True)
    except Corrupt as e:
        reply(id=id, error=str(e), code="Corrupt")
    except (OSError, ValueError, http.client.HTTPException) as e:
        reply(id=id, error=f"{type(e).__name__}: {e}")
    except EOFError as e:
        reply(id=id, error=str(e), within=True)
    finally:
        if s := sockets.pop(id, None):
            s.close()

reply(can=["h1"])
for line in sys.stdin:
    request = json.loads(line)
    if "watch" in request:
        threading.Thread(target=watch, kwargs=request["watch"], daemon=True).start()
    elif s := sockets.get(request["close"]["id"]):
        try:
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # already closed
