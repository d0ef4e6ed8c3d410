"""A server to be fuzzed, as a process of its own: it prints where it listens and a token, and ends with its input.

python -m tests.unit.gateway.fuzz_server sqlite:////tmp/x.db
"""

import asyncio
import json
import socket
import sys

import uvicorn

from headway import CallbackSettings, Headway, Settings, Turn
from headway.gateway import build_app


def cast(store: str) -> Headway:
    """The agents that the examples of the documents name."""
    callbacks = CallbackSettings("a secret of the fuzzer", private=True)
    hw = Headway(store, settings=Settings(callbacks=callbacks))

    @hw.agent("support")
    async def support(turn: Turn) -> str:
        turn.emit("looking …")
        return f"re: {turn.text}"

    hw.agent("browser")(support)
    return hw


async def serve(store: str) -> None:
    hw = cast(store)
    async with hw, build_app(hw) as gateway:
        _, token = await hw.tokens.create("fuzz", ["admin"])
        server = uvicorn.Server(uvicorn.Config(gateway.app, lifespan="off", log_level="error"))
        # Named as TCP, so that answers are sent at once and not held back for 40 ms.
        door = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        door.bind(("127.0.0.1", 0))
        async with asyncio.TaskGroup() as group:
            group.create_task(server.serve([door]))
            told = {"url": f"http://127.0.0.1:{door.getsockname()[1]}", "token": token}
            sys.stdout.write(json.dumps(told) + "\n")
            sys.stdout.flush()
            await asyncio.to_thread(sys.stdin.read)
            server.should_exit = True
        gateway.desk.close()
        await hw.close(0)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
