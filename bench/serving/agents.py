"""The agents of the measured server: `headway serve --agents bench.serving.agents:hw`."""

import asyncio

from headway import Headway, Turn

hw = Headway()


@hw.agent("worker")
async def worker(turn: Turn) -> str:
    return turn.text


@hw.agent("walker")
async def walker(turn: Turn) -> str:
    """Takes a moment, so that events come over some time and not all in one piece."""
    await asyncio.sleep(0.01)
    return turn.text
