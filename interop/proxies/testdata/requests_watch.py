"""requests_watch.py URL: prints the decompressed text of a watch as it arrives, with requests."""
import sys

import requests

response = requests.get(sys.argv[1], headers={"Accept": "text/event-stream"}, stream=True)
assert response.headers["Content-Encoding"] == "gzip"
for part in response.iter_content(chunk_size=None):
    sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()
