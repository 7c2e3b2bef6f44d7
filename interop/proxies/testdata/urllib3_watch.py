"""urllib3_watch.py URL: prints the decompressed text of a watch as it arrives, with urllib3. Without
decode_content=True, stream yields the compressed bytes of a chunked response."""
import sys

import urllib3

headers = {"Accept": "text/event-stream", "Accept-Encoding": "gzip"}
response = urllib3.PoolManager().request("GET", sys.argv[1], headers=headers, preload_content=False)
assert response.headers["Content-Encoding"] == "gzip"
for part in response.stream(decode_content=True):
    sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()
