"""uploads.py SECONDS, then pairs URL SIZE: posts a body of SIZE bytes to each URL with httpx, and
prints a line with the version and the status."""
import sys

import httpx

with httpx.Client(http2=True, verify=False, trust_env=False, timeout=float(sys.argv[1])) as client:
    for url, size in zip(sys.argv[2::2], sys.argv[3::2]):
        try:
            response = client.post(url, content=bytes(int(size)))
            print(response.http_version, response.status_code, flush=True)
        except httpx.HTTPError as e:
            print(repr(e), flush=True)
