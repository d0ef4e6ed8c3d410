"""From a submission to its start, one at a time on an idle node, beside a bare INSERT of the same row."""

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from bench._load import AGENT, TEXT
from headway import Headway, Turn
from headway.model.run import AgentName, Run, RunId, SessionKey
from headway.model.settings import MAIN
from headway.model.words import Source
from headway.store.codec import encode_run

if TYPE_CHECKING:
    import asyncpg

WARM_UP = 50
PAUSE_S = 0.003
"""Between two samples: time to store the end of the run, so that the node is idle again."""

Probe: TypeAlias = Callable[[int], Awaitable[float]]
"""Does something for the n-th time; answers how many seconds that took."""
_TABLE = "CREATE TABLE bare (id text PRIMARY KEY, session text, agent text, at bigint, body text)"


@dataclass(frozen=True, slots=True)
class Spread:
    """The middle and the slow end of many samples, in milliseconds."""

    p50: float
    p99: float

    @classmethod
    def of(cls, seconds: list[float]) -> "Spread":
        ordered = sorted(seconds)
        return cls(
            p50=ordered[len(ordered) // 2] * 1000, p99=ordered[len(ordered) * 99 // 100] * 1000
        )


async def in_turn(samples: int, probes: Mapping[str, Probe]) -> dict[str, Spread]:
    """Take one sample of each, then the next of each, so that the machine's moods meet all alike."""
    took: dict[str, list[float]] = {name: [] for name in probes}
    for number in range(samples + WARM_UP):
        for name, probe in probes.items():
            took[name].append(await probe(number))
            await asyncio.sleep(PAUSE_S)
    return {name: Spread.of(seconds[WARM_UP:]) for name, seconds in took.items()}


class Starts:
    """An agent that notes when it is called, and how long that took since it was asked for."""

    def __init__(self) -> None:
        self._started = 0.0

    async def agent(self, turn: Turn) -> str:
        self._started = time.perf_counter()
        return turn.text

    def asked_of(self, hw: Headway, prefix: str) -> Probe:
        """Submissions to this node, each in a new session."""

        async def probe(number: int) -> float:
            began = time.perf_counter()
            handle = await hw.submit(AGENT, TEXT, session=f"{prefix}:{number}")
            await handle.wait()
            return self._started - began

        return probe


class PostgresInsert:
    """An INSERT on a connection of its own; it is committed when it returns."""

    def __init__(self, connection: "asyncpg.Connection") -> None:
        self._connection = connection

    @classmethod
    async def open(cls, url: str) -> "PostgresInsert":
        import asyncpg

        connection = await asyncpg.connect(url)
        await connection.execute(_TABLE)
        return cls(connection)

    async def __call__(self, number: int) -> float:
        row = _row(number)
        began = time.perf_counter()
        await self._connection.execute("INSERT INTO bare VALUES ($1, $2, $3, $4, $5)", *row)
        return time.perf_counter() - began

    async def close(self) -> None:
        await self._connection.close()


class SqliteInsert:
    """The same into the store's own file, as durable as the store writes."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute(_TABLE)

    async def __call__(self, number: int) -> float:
        row = _row(number)
        began = time.perf_counter()
        self._connection.execute("INSERT INTO bare VALUES (?, ?, ?, ?, ?)", row)
        return time.perf_counter() - began

    def close(self) -> None:
        self._connection.close()


class Notify:
    """A NOTIFY on one connection, until another one has heard it."""

    def __init__(self, speaker: "asyncpg.Connection", listener: "asyncpg.Connection") -> None:
        self._speaker = speaker
        self._listener = listener
        self._heard = asyncio.Event()

    @classmethod
    async def open(cls, url: str) -> "Notify":
        import asyncpg

        notify = cls(await asyncpg.connect(url), await asyncpg.connect(url))
        await notify._listener.add_listener("bench", lambda *_: notify._heard.set())
        return notify

    async def __call__(self, _: int) -> float:
        self._heard.clear()
        began = time.perf_counter()
        await self._speaker.execute("NOTIFY bench")
        await self._heard.wait()
        return time.perf_counter() - began

    async def close(self) -> None:
        await self._speaker.close()
        await self._listener.close()


def _row(number: int) -> tuple[str, str, str, int, str]:
    """What a store keeps of a run."""
    run = Run(
        RunId(f"1k3f9a2xqn0d8s1-{number}"),
        AgentName(AGENT),
        SessionKey(f"chat:{number}"),
        Source.MESSAGE,
        MAIN,
        0,
        1_700_000_000_000_000 + number,
        TEXT,
        trace_id=f"1k3f9a2xqn0d8s1-{number}",
    )
    return run.id, run.session, run.agent, run.submitted_at, encode_run(run)
