"""A client under test: Watch of Python's package kubernetes with the control hook of
docs/conformance-hook.md.

    apt-get install python3-kubernetes
    listwatch conformance client --exec '/usr/bin/python3 kubernetes_python.py'
"""
import json, socket, sys, tempfile, threading, urllib.parse

from kubernetes import client, watch
from urllib3.exceptions import HTTPError

lock, watches = threading.Lock(), {}

def reply(**line):
    with lock:
        print(json.dumps(line), flush=True)

class Watch:
    def __init__(self, id, url, headers={}, resume=False, ca=None, **_):
        self.id, self.resume, self.response, self.closed = id, resume, None, False
        u = urllib.parse.urlsplit(url)
        config = client.Configuration()
        config.host, self.path = f"{u.scheme}://{u.netloc}", u.path
        if ca:
            with tempfile.NamedTemporaryFile("w", suffix=".pem", delete=False) as f:
                f.write(ca)
            config.ssl_ca_cert = f.name
        self.api = client.ApiClient(config)
        for name, value in headers.items():
            self.api.set_default_header(name, value)
        self.query = dict(urllib.parse.parse_qsl(u.query))
        self.version = self.query.pop("resourceVersion", None)
        self.query.pop("watch", None)  # the library sets it
        threading.Thread(target=self.run, daemon=True).start()

    def list_things(self, watch, _preload_content, resource_version=None, timeout_seconds=None):
        """Lists or watches, in the form of the package's own functions.

        :return: object
        """
        if self.closed:
            raise OSError("closed")
        query = {**self.query, "watch": watch}
        if resource_version is not None:
            query["resourceVersion"] = resource_version
        self.response, status, headers = self.api.call_api(
            self.path, "GET", query_params=list(query.items()), header_params={"Accept": "application/json"},
            response_type="object", _preload_content=_preload_content)
        reply(id=self.id, status=status, headers={k: v for k, v in headers.items()}, transport="h1")
        return self.response

    def close(self):
        self.closed = True
        try:
            self.response._connection.sock.shutdown(socket.SHUT_RDWR)
        except (AttributeError, OSError):
            pass  # not open, or closed already

    def run(self):
        args = {} if self.version is None else {"resource_version": self.version}
        if not self.resume:
            args["timeout_seconds"] = None  # with this argument, the library does not resume
        try:
            for event in watch.Watch().stream(self.list_things, **args):
                if self.closed:
                    return
                reply(id=self.id, event={"type": event["type"], "object": event["raw_object"]})
            reply(id=self.id, end=True)
        except client.ApiException as e:
            self.refused(e)
        except (HTTPError, OSError) as e:
            reply(id=self.id, error=str(e))
        except Exception as e:  # whatever the library raises for content that it cannot read
            reply(id=self.id, error=f"{type(e).__name__}: {e}", code="Corrupt")

    def refused(self, e):
        if e.body is None:  # an event of type ERROR, of which the library keeps "REASON: MESSAGE"
            reason, _, message = e.reason.partition(": ")
            body = {"kind": "Status", "apiVersion": "v1", "status": "Failure",
                    "reason": reason, "message": message, "code": e.status}
            if not self.resume:
                reply(id=self.id, event={"type": "ERROR", "object": body})
                return reply(id=self.id, end=True)
        else:
            body = e.body.decode(errors="replace") if isinstance(e.body, bytes) else e.body
            try:
                body = json.loads(body)
            except ValueError:
                pass
        reply(id=self.id, status=e.status, body=body)

reply(can=["h1", "resume", "tls"])
for line in sys.stdin:
    request = json.loads(line)
    if "watch" in request:
        watches[request["watch"]["id"]] = Watch(**request["watch"])
    elif w := watches.pop(request.get("close", {}).get("id"), None):
        w.close()
