"""websockets_watch.py URL: prints the messages of a watch, one per line, with websockets."""
import asyncio
import sys

import websockets


async def main():
    async with websockets.connect(sys.argv[1]) as socket:
        async for message in socket:
            print(message.strip(), flush=True)


asyncio.run(main())
