"""zlib_watch.py URL: prints the decompressed text of a watch as it arrives, with urllib and zlib."""
import sys
import urllib.request
import zlib

headers = {"Accept": "text/event-stream", "Accept-Encoding": "gzip"}
response = urllib.request.urlopen(urllib.request.Request(sys.argv[1], headers=headers))
assert response.headers["Content-Encoding"] == "gzip"
decoder = zlib.decompressobj(16 + zlib.MAX_WBITS)
while part := response.read1():
    sys.stdout.buffer.write(decoder.decompress(part))
    sys.stdout.buffer.flush()
