"""Jobs in a running node, in virtual time: exactly when, exactly once (C)."""

import asyncio
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from headway import Headway, InvalidInput, Route, Settings, Turn
from headway.model.time import DAY
from headway.testing import run_virtual
from headway.testing.clock import VirtualLoop


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def settings(**changes: object) -> Settings:
    return Settings(poll_every=DAY, **changes)  # type: ignore[arg-type]


class Log:
    """An agent that notes when it was asked, and what."""

    def __init__(self, takes_s: float = 0) -> None:
        self.takes_s = takes_s
        self.asked: list[tuple[float, str]] = []

    async def __call__(self, turn: Turn) -> str:
        self.asked.append((asyncio.get_running_loop().time(), turn.text))
        await asyncio.sleep(self.takes_s)
        return f"re: {turn.text}"

    @property
    def times(self) -> list[float]:
        return [when for when, _ in self.asked]
