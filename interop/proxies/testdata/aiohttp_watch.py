"""aiohttp_watch.py URL: prints the decompressed text of a watch as it arrives, with aiohttp. A URL
with the scheme ws is read as messages, one per line."""
import asyncio
import sys

import aiohttp


async def main(url):
    async with aiohttp.ClientSession() as session:
        if url.startswith("ws:"):
            async with session.ws_connect(url, compress=15) as socket:
                async for message in socket:
                    print(message.data.strip(), flush=True)
            return
        async with session.get(url, headers={"Accept": "text/event-stream"}) as response:
            async for part in response.content.iter_any():
                sys.stdout.buffer.write(part)
                sys.stdout.buffer.flush()


asyncio.run(main(sys.argv[1]))
