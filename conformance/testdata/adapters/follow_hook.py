"""The client of examples/python with the control hook of docs/conformance-hook.md.

    listwatch conformance client --exec 'python3 conformance/testdata/adapters/follow_hook.py'
"""
import json, os, queue, socket, sys, threading, urllib.parse

sys.path.append(os.path.join(os.path.dirname(__file__), "../../../examples/python"))
import follow

lock, watches = threading.Lock(), {}

def reply(**line):
    with lock:
        print(json.dumps(line, allow_nan=False), flush=True)

class Watch:
    def __init__(self, id, url, headers={}, limit=follow.LIMIT, resume=False, idleTimeout=0, refresh=False, **_):
        self.id, self.current, self.fresh, self.closed = id, headers, queue.Queue(), False
        u = urllib.parse.urlsplit(url)
        self.version = dict(urllib.parse.parse_qsl(u.query)).get("resourceVersion", "")
        # The client sets these parameters itself.
        own = [(k, v) for k, v in urllib.parse.parse_qsl(u.query) if k not in ("watch", "resourceVersion", "allowWatchBookmarks")]
        if resume:
            url = urllib.parse.urlunsplit(u._replace(query=urllib.parse.urlencode(own)))
        self.client = follow.Follower(url, self.headers, self.version, idleTimeout / 1000 or follow.IDLE, limit)
        self.client.relists, self.client.opened = False, self.opened
        self.resume, self.refresh, self.bookmarks = resume, refresh, "allowWatchBookmarks" in url
        threading.Thread(target=self.run, daemon=True).start()

    def headers(self, refresh):
        if refresh and self.refresh:
            reply(id=self.id, refresh=True)
            self.current = self.fresh.get()
        return self.current

    def opened(self, headers):
        reply(id=self.id, status=200, headers=headers, transport="h1")

    def close(self):
        self.closed = True
        if c := self.client.connection:
            try:
                c.sock and c.sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # already closed

    def single(self):
        """Yields the events of one stream as they arrive."""
        self.client.connection, response = follow.get(self.client.url, self.current, follow.IDLE)
        self.opened(dict(response.getheaders()))
        for event in follow.objects(response, self.client.limit):
            yield event["type"], event["object"]

    def run(self):
        try:
            for kind, o in self.client.events() if self.resume else self.single():
                if self.closed:
                    return
                reply(id=self.id, event={"type": kind, "object": o})
            reply(id=self.id, end=True)
        except follow.Refused as e:
            reply(id=self.id, status=e.status, body=e.body)
        except follow.Corrupt as e:
            reply(id=self.id, error=str(e), code="Corrupt")
        except follow.Unknown as e:
            reply(id=self.id, error=str(e), code="Unsupported")
        except follow.Broken as e:
            reply(id=self.id, error=str(e), within=e.within)
        except ValueError as e:
            reply(id=self.id, error=str(e))

reply(can=["h1", "resume", "idle", "refresh"])
for line in sys.stdin:
    request = json.loads(line)
    if "watch" in request:
        watches[request["watch"]["id"]] = Watch(**request["watch"])
    elif "headers" in request:
        watches[request["headers"]["id"]].fresh.put(request["headers"]["headers"])
    elif w := watches.pop(request["close"]["id"], None):
        w.close()
