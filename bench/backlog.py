"""What a claim costs on PostgreSQL, with few and with very many runs waiting."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, TypeAlias

from bench._load import Broken
from bench.harness import Report, need, progress
from headway.model.run import AgentName, Run, RunId, SessionKey
from headway.model.settings import MAIN, Settings
from headway.model.time import SECOND
from headway.model.words import Source
from headway.runtime.clock import SystemClock
from headway.store.codec import encode_run
from headway.wiring import open_store
from headway.wiring import run as run_on_loop

if TYPE_CHECKING:
    import asyncpg

TITLE = "Cost of a claim with few and very many waiting runs"
WAITING = (1_000, 1_000_000)
CROWD = AgentName("crowd")
FEW = tuple(AgentName(f"agent-{number}") for number in range(9))
"""Agents with ten waiting runs each, beside the one that has all the others."""
EACH = 10
ROOM = 10
CLAIMS = 60
WARM_UP = 10
LEASE = 3600 * SECOND

Scans: TypeAlias = dict[str, int]
"""How often each index or table was read."""

# As an admission leaves them: each run in a session of its own that nobody owns. The rows do not lie in the order
# of their ranks, as in a table that has been used for a while.
_SESSIONS = """
    INSERT INTO headway.sessions (key, epoch, last_seq, lane, agent, rank, ready_at)
    SELECT 'session-' || n, nextval('headway.epochs'), 1, $1,
           CASE WHEN n <= $2 THEN 'agent-' || (n % $3) ELSE $4 END, $5 + (n * 7919) % $6, $5
    FROM generate_series(1, $6::bigint) AS n
"""
_RUNS = """
    INSERT INTO headway.runs (seq, task, id, session, agent, body)
    SELECT 1, false, 'run-' || substr(s.key, 9), s.key, s.agent,
           replace(replace($1, '{n}', substr(s.key, 9)), '{agent}', s.agent)
    FROM headway.sessions s
"""
_QUEUE = """
    INSERT INTO headway.queue (seq, rank, ready_at, task, session, run, lane, agent)
    SELECT 1, s.rank, s.ready_at, false, s.key, 'run-' || substr(s.key, 9), s.lane, s.agent
    FROM headway.sessions s
"""
_INDEX_SCANS = """
    SELECT indexrelname, idx_scan FROM pg_stat_user_indexes WHERE schemaname = 'headway'
"""
_TABLE_SCANS = """
    SELECT relname, seq_scan FROM pg_stat_user_tables
    WHERE schemaname = 'headway' AND relname IN ('sessions', 'queue', 'runs')
"""


@dataclass(frozen=True, slots=True)
class Found:
    """The median cost of a claim, and by which ways it went to its rows."""

    milliseconds: float
    indexes: tuple[str, ...]
    whole_tables: tuple[str, ...]


def run(quick: bool) -> Report:
    need("asyncpg")
    from bench._postgres import running_postgres

    sizes = [waiting // 20 if quick and waiting > 10_000 else waiting for waiting in WAITING]
    with running_postgres() as server:
        backlogs = [Backlog(asyncio.run(server.new_database()), waiting) for waiting in sizes]
        found = dict(zip(sizes, run_on_loop(_measure(backlogs)), strict=True))
        about = asyncio.run(server.describe())
    few, many = (found[waiting] for waiting in sizes)
    return Report(
        name="backlog",
        columns=("waiting runs", "ms a claim", "of the first", "indexes used", "tables read whole"),
        rows=[
            (
                waiting,
                result.milliseconds,
                result.milliseconds / few.milliseconds,
                ", ".join(result.indexes),
                ", ".join(result.whole_tables) or "none",
            )
            for waiting, result in found.items()
        ],
        figures={
            "growth": many.milliseconds / few.milliseconds,
            "claim_ms_few": few.milliseconds,
            "claim_ms_many": many.milliseconds,
            "tables_read_whole": float(len(many.whole_tables)),
        },
        limits={"growth": ("<=", 2.0), "tables_read_whole": ("<=", 0.0)},
        peers=[
            (f"Headway, {waiting:,} waiting", result.milliseconds)
            for waiting, result in found.items()
        ],
        unit="ms a claim",
        notes=(
            about,
            f"A claim takes {ROOM} sessions. One of {len(FEW) + 1} agents has nearly all of the waiting runs.",
            "The first claim has to give every agent its share.",
            f"Medians of {CLAIMS}, taken in turn. Indexes as the server counted their use during the claims.",
        ),
    )


class Backlog:
    """A database with so many waiting runs, and what claims of them took."""

    def __init__(self, url: str, waiting: int) -> None:
        self._url = url
        self._waiting = waiting
        self._store = open_store(url, Settings())
        self._took: list[float] = []
        self._before: tuple[Scans, Scans] = ({}, {})

    async def open(self) -> None:
        progress(f"{self._waiting:,} waiting runs")
        await self._store.open()
        await self._store.enlist("bench", LEASE)
        async with _connection(self._url) as connection:
            await _fill(connection, self._waiting)
        async with _connection(self._url) as connection:
            self._before = await _scans(connection)

    async def claim(self) -> None:
        began = time.perf_counter()
        claims = await self._store.claim({MAIN: ROOM}, [CROWD, *FEW], SystemClock().now())
        self._took.append(time.perf_counter() - began)
        if len(claims.holdings) != ROOM:
            raise Broken(f"{len(claims.holdings)} of {ROOM} sessions were claimed")
        agents = {holding.places[0].run.agent for holding in claims.holdings}
        if len(self._took) == 1 and len(agents) != ROOM:
            raise Broken(f"only {len(agents)} of {ROOM} agents got their share")

    async def close(self) -> Found:
        # Only when its connections are closed has the server counted all uses of an index.
        await self._store.close()
        await asyncio.sleep(1)
        async with _connection(self._url) as connection:
            indexes, tables = await _scans(connection)
        return Found(
            median(self._took[WARM_UP:]) * 1000,
            _grown(self._before[0], indexes),
            _grown(self._before[1], tables),
        )


async def _measure(backlogs: Sequence[Backlog]) -> list[Found]:
    """Claim from each in turn, so that the machine's moods meet all alike."""
    for backlog in backlogs:
        await backlog.open()
    for number in range(CLAIMS + WARM_UP):
        for backlog in backlogs if number % 2 else reversed(backlogs):
            await backlog.claim()
    return [await backlog.close() for backlog in backlogs]


@asynccontextmanager
async def _connection(url: str) -> "AsyncIterator[asyncpg.Connection]":
    import asyncpg

    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


async def _fill(connection: "asyncpg.Connection", waiting: int) -> None:
    now = SystemClock().now() - SECOND
    body = Run(
        RunId("run-{n}"),
        AgentName("{agent}"),
        SessionKey("session-{n}"),
        Source.MESSAGE,
        MAIN,
        0,
        now,
        "hello",
    )
    few = len(FEW) * EACH
    await connection.execute(_SESSIONS, MAIN, few, len(FEW), CROWD, now, waiting, timeout=600)
    await connection.execute(_RUNS, encode_run(body), timeout=600)
    await connection.execute(_QUEUE, timeout=600)
    await connection.execute("VACUUM (ANALYZE)", timeout=600)
    await connection.execute("CHECKPOINT", timeout=600)


async def _scans(connection: "asyncpg.Connection") -> tuple[Scans, Scans]:
    return dict(await connection.fetch(_INDEX_SCANS)), dict(await connection.fetch(_TABLE_SCANS))


def _grown(before: Scans, after: Scans) -> tuple[str, ...]:
    """Those that were used once a claim, or more; what happened once only was not the claim."""
    return tuple(sorted(name for name in after if after[name] - before[name] >= CLAIMS // 2))
