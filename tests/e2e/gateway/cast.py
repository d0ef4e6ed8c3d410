"""Agents that a test can hold and let go: what they wait for are files in the test's folder."""

import asyncio
import os
from pathlib import Path

from headway import Headway, Turn
from tests.e2e.ledger import FOLDER

hw = Headway()
_LOOK_EVERY_S = 0.01


def gate(name: str, folder: Path | None = None) -> Path:
    """The file whose being there lets go whoever waits for this name."""
    return (folder or Path(os.environ[FOLDER])) / f"gate-{name}"


@hw.agent("echo")
async def echo(turn: Turn) -> str:
    """Answers at once."""
    return f"echo: {turn.text}"


@hw.agent("steady", steerable=True)
async def steady(turn: Turn) -> str:
    """A text `hold NAME` is held until that gate is open; what it is told meanwhile is in the reply."""
    if not turn.text.startswith("hold "):
        return f"steady: {turn.text}"
    name = turn.text.removeprefix("hold ").split()[0]
    told: list[str] = []
    turn.emit(f"holding {name}")
    while not gate(name).exists() and not told:
        if (message := turn.inbox.poll()) is not None:
            told.append(message.text)
        await asyncio.sleep(_LOOK_EVERY_S)
    return f"steady held {name}; told {told}"


async def _opened(path: Path) -> None:
    while True:
        if path.exists():
            return
        await asyncio.sleep(_LOOK_EVERY_S)


async def _work(turn: Turn) -> str:
    assert turn.task is not None
    if held := turn.task.params.get("gate"):
        await _opened(gate(str(held)))
    return f"{turn.task.action} {turn.task.ref}".strip()


@hw.agent("greedy")
async def greedy(turn: Turn) -> str:
    return await _work(turn)


@hw.agent("modest")
async def modest(turn: Turn) -> str:
    return await _work(turn)
