"""A program with jobs of every second: each firing is written down before anything else is done."""

import asyncio
import os
from pathlib import Path

from headway import Headway, Turn
from tests.e2e.ledger import FOLDER

FIRED = Path(os.environ[FOLDER]) / "fired"
WORKS_S = 0.02

hw = Headway()


@hw.agent("clerk")
async def clerk(turn: Turn) -> str:
    assert turn.run.firing is not None
    with FIRED.open("a", encoding="utf-8") as file:
        file.write(f"{turn.job} {turn.run.firing.due_at} {turn.id} {turn.attempt}\n")
    await asyncio.sleep(WORKS_S)
    return "noted"


@hw.every("1s", agent="clerk", text="tick")
def plain() -> None: ...


@hw.every("1s", agent="clerk", text="tock", gate={"function": "always"})
def gated() -> None: ...


@hw.every("1s", agent="clerk", overlap="allow", misfire="all")
def all_of_them() -> str:
    return "every one"


@hw.function("always")
async def always() -> bool:
    await asyncio.sleep(WORKS_S)
    return True
