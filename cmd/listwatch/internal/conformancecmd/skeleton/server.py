"""An adapter for listwatch conformance: it starts your server and writes objects to it.

    listwatch conformance server --exec 'python3 adapter.py' --known-failures known_failures.txt

Change COMMAND, URL, KIND, put and delete for your server. docs/conformance-hook.md describes the
lines that the adapter and the suite exchange, and what else an adapter can offer.
"""
import json, os, random, socket, subprocess, sys, time, urllib.error, urllib.request

# COMMAND starts a server with an empty collection at URL, and KIND is the kind of its objects.
COMMAND = os.environ.get("SERVER_COMMAND", "./server --port {port}")
URL = os.environ.get("SERVER_URL", "http://127.0.0.1:{port}/things")
KIND = os.environ.get("SERVER_KIND", "Thing")

def put(url, key, object):
    """Creates an object, or replaces it if it exists. Returns its version."""
    try:
        written = send("PUT", f"{url}/{key['namespace']}/{key['name']}", object)
    except urllib.error.HTTPError as e:
        if e.code != 404:
            raise
        written = send("POST", url, object)
    return {"version": written["metadata"]["resourceVersion"]}

def delete(url, key):
    """Deletes an object. Returns the version of the delete."""
    try:
        deleted = send("DELETE", f"{url}/{key['namespace']}/{key['name']}")
    except urllib.error.HTTPError as e:
        if e.code != 404:
            raise
        return {"error": "not found", "code": "NotFound"}
    return {"version": deleted["metadata"]["resourceVersion"]}

def compact(url):
    """Discards all history. Level 1 requires it. If your server can do it, add "compact" to "can" below."""
    send("POST", url.replace("/things", "/compact"), {})
    return {}

def send(method, url, object=None):
    body = None if object is None else json.dumps(object).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request) as response:
        return json.load(response)

servers = {}

def free_port():
    """Finds a port that connections do not take before the server listens: it is not an ephemeral one."""
    while True:
        port = random.randrange(10000, 20000)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass  # in use

def start(at):
    """Starts a server on a free port, and returns the URL of its collection."""
    port = free_port()
    command = "exec " + COMMAND.replace("{port}", str(port))
    process = subprocess.Popen(command, shell=True, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    servers[at] = process, URL.replace("{port}", str(port))
    while process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return servers[at][1]
        except OSError:
            time.sleep(0.01)
    raise RuntimeError(f"the server has exited with code {process.returncode}: {command}")

def stop(at):
    process, _ = servers.pop(at)
    process.kill()
    process.wait()

def do(request):
    what, at = request["do"], request.get("at", "")
    if what == "open":
        at = f"c{request['id']}"
        return {"at": at, "url": start(at)}
    if what == "close":
        return stop(at) or {}
    url = servers[at][1]
    if what == "compact":
        return compact(url)
    return put(url, request["key"], request["object"]) if what == "put" else delete(url, request["key"])

try:
    print(json.dumps({"url": start(""), "kind": KIND, "can": ["open", "put", "lives"]}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = do(request)
        except Exception as e:
            reply = {"error": f"{type(e).__name__}: {e}"}
        print(json.dumps({"id": request["id"], **reply}), flush=True)
finally:
    for at in list(servers):
        stop(at)
