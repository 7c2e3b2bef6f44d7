"""Follows a collection over HTTP/1.1. The numbers are the steps of docs/protocol.md, "A client in twelve steps".

    python3 examples/python/follow.py http://127.0.0.1:8081/flags
"""
import codecs, email.utils, http.client, json, random, sys, time, urllib.parse

IDLE = 150  # seconds; two and a half times the interval of bookmarks
LIMIT = 16 << 20  # characters of one event

class Refused(Exception):
    """The server refused a request, or ended a stream with an ERROR event."""
    def __init__(self, status, body, retry_after=0):
        super().__init__(f"status {status}: {body}")
        self.status, self.body, self.retry_after = status, body, retry_after

class Broken(Exception):
    """The connection broke; within an event if within is true."""
    def __init__(self, message, within=False):
        super().__init__(message)
        self.within = within

class Corrupt(Exception):
    """The server violates the protocol or a limit."""

def get(url, headers, timeout, redirects=10):
    """Sends a GET request, and follows redirects without headers to another host (12)."""
    u = urllib.parse.urlsplit(url)
    connect = http.client.HTTPSConnection if u.scheme == "https" else http.client.HTTPConnection
    connection = connect(u.netloc, timeout=timeout)
    try:
        connection.request("GET", f"{u.path}?{u.query}", headers={"Accept": "application/json", **headers})
        response = connection.getresponse()
    except (OSError, http.client.HTTPException) as e:
        raise Broken(f"{type(e).__name__}: {e}")
    if response.status in (301, 302, 303, 307, 308) and redirects:
        target = urllib.parse.urljoin(url, response.headers["Location"])
        same = urllib.parse.urlsplit(target).netloc == u.netloc
        return get(target, headers if same else {}, timeout, redirects - 1)
    if response.status != 200:
        raise refusal(response)
    return connection, response

def refusal(response):
    text = response.read(1 << 16).decode(errors="replace")
    try:
        body = json.loads(text)
    except ValueError:
        body = text
    return Refused(response.status, body, retry_after(response.headers.get("Retry-After"), body))

def retry_after(header, body):
    """Returns the seconds that the server asks to wait, which may also be in the Status (10)."""
    if header and header.isdigit():
        return int(header)
    if header:
        return max(0, email.utils.parsedate_to_datetime(header).timestamp() - time.time())
    return (body.get("details") or {}).get("retryAfterSeconds", 0) if isinstance(body, dict) else 0

def objects(response, limit):
    """Yields the JSON objects of a stream: their brackets delimit them, not lines or chunks (3)."""
    text, utf8, decoder = "", codecs.getincrementaldecoder("utf-8")(), json.JSONDecoder()
    while True:
        try:
            chunk = response.read1(1 << 16)
        except (OSError, ValueError, http.client.HTTPException) as e:  # ValueError: closed by another thread
            raise Broken(f"{type(e).__name__}: {e}", within=bool(text))
        if not chunk:
            break
        text = (text + utf8.decode(chunk)).lstrip()
        while text:
            try:
                event, length = decoder.raw_decode(text)
            except ValueError:
                event, length = None, len(text)  # the object is incomplete
            except RecursionError:
                raise Corrupt("an event is nested too deeply")
            if length > limit:
                raise Corrupt(f"an event has more than {limit} characters")
            if event is None:
                break
            yield event
            text = text[length:].lstrip()
    if text:
        raise Broken("the stream ended within an event", within=True)

class Follower:
    def __init__(self, url, headers=lambda refresh: {}, version="", idle=IDLE, limit=LIMIT):
        """headers(refresh) returns the headers of a request, with fresh credentials if refresh is true."""
        self.url, self.headers, self.version, self.idle, self.limit = url, headers, version, idle, limit
        self.relists, self.connection, self.opened = not version, None, lambda headers: None
        self.newest, self.keys = "", set()  # the version of the newest events, and their keys
        self.epoch, self.failures, self.refresh, self.corrupt, self.silent = None, 0, False, 0, 0

    def request(self, **parameters):
        u = urllib.parse.urlsplit(self.url)
        query = urllib.parse.urlencode([*urllib.parse.parse_qsl(u.query), *parameters.items()])
        headers = self.headers(self.refresh)
        self.connection, response = get(urllib.parse.urlunsplit(u._replace(query=query)), headers, self.idle)
        before, self.epoch = self.epoch, response.headers.get("Listwatch-Epoch")
        if self.version and before not in (None, self.epoch):
            raise Refused(410, "the versions of the server have started over")  # (9)
        return response

    def list(self):
        """Yields RESET and then the whole state (1)."""
        state = json.loads(self.request().read())
        yield "RESET", None
        for item in state["items"]:
            yield "ADDED", item
        self.version = state["metadata"]["resourceVersion"]

    def watch(self):
        """Yields the changes of one stream (2)."""
        response = self.request(watch="1", resourceVersion=self.version, allowWatchBookmarks="true")
        self.opened(dict(response.getheaders()))
        self.silent += 1
        for event in objects(response, self.limit):
            kind, o, self.silent = event["type"], event["object"], 0
            if kind == "ERROR":
                raise Refused(o.get("code", 500), o, retry_after(None, o))  # (7)
            version, key = position(kind, o)
            self.corrupt = 0
            if kind == "BOOKMARK":
                self.version, self.newest, self.keys = version, "", set()  # (6)
                continue
            # More events may have this version, so the watch resumes before it, and skips repetitions (5).
            if version != self.newest:
                self.version, self.newest, self.keys = self.newest or self.version, version, set()
            if key not in self.keys:
                self.keys.add(key)
                yield kind, o  # (4)

    def events(self):
        """Yields (type, object) for ever: RESET before a state, then ADDED, MODIFIED and DELETED."""
        while True:
            began, wait = time.monotonic(), 0
            try:
                if not self.version:
                    yield from self.list()
                yield from self.watch()
                self.silent *= time.monotonic() - began < 1
                if self.silent == 3:
                    raise Refused(410, "three streams from one version ended at once and without an event")  # (8)
            except Refused as e:
                wait = self.handle(e, time.monotonic() - began)
            except Broken:
                self.failures += 1  # (8)
            except Corrupt:
                self.corrupt += 1
                if self.corrupt > 1:
                    raise
            if time.monotonic() - began > 120:
                self.failures = 0
            time.sleep(random.random() * min(0.8 * 2 ** max(0, self.failures - 1), 30) + wait)  # (10)

    def handle(self, e, lived):
        """Returns the seconds to wait before the next request, or raises e if it is permanent (11)."""
        refreshed, self.refresh, self.silent = self.refresh, False, 0
        if e.status == 410 and self.relists:
            self.version, self.newest, self.keys = "", "", set()
        elif e.status == 401 and (not refreshed or lived > 1):
            self.refresh = True  # fresh credentials that are refused at once are permanent
        elif e.status in (408, 425, 429) or e.status >= 500 and e.status not in (501, 505):
            self.failures += 1
        else:
            raise e
        return e.retry_after

class Unknown(Exception):
    """The server sent something that this client does not know."""

def position(kind, o):
    """Returns the version and the key of an event."""
    if kind not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
        raise Unknown(f"type {kind}")
    metadata = o.get("metadata") or {}
    version = metadata.get("resourceVersion", "")
    if not (version.isascii() and version.isdigit() and version[0] != "0" and int(version) < 1 << 64):
        raise Unknown(f"resourceVersion {version!r}")
    return version, (metadata.get("namespace"), metadata.get("name"))

if __name__ == "__main__":
    for kind, o in Follower(sys.argv[1]).events():
        print(kind, o and json.dumps(o["metadata"]["name"]), flush=True)
