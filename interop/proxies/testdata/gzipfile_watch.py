"""gzipfile_watch.py URL: prints the decompressed text of a watch as it arrives, with urllib and
GzipFile. A GzipFile reads ahead, and read of a response blocks until it has that many bytes, so the
GzipFile must use read1."""
import gzip
import sys
import urllib.request


class Arrived:
    """A file whose read returns what has arrived."""

    def __init__(self, response):
        self.read = response.read1


headers = {"Accept": "text/event-stream", "Accept-Encoding": "gzip"}
response = urllib.request.urlopen(urllib.request.Request(sys.argv[1], headers=headers))
assert response.headers["Content-Encoding"] == "gzip"
text = gzip.GzipFile(fileobj=Arrived(response), mode="rb")
while part := text.read1():
    sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()
