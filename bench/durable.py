"""What durability costs: memory, SQLite and PostgreSQL, through the whole engine, sessions in order."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench._disk import describe_disk, scratch
from bench._latency import Notify, PostgresInsert, Probe, Spread, SqliteInsert, Starts, in_turn
from bench._load import AGENT, PostgresLook, SqliteLook, drain, fill, headway, in_memory
from bench.harness import Report, need, progress
from headway.wiring import MEMORY
from headway.wiring import run as run_on_loop

TITLE = "Memory, SQLite and PostgreSQL: submit, drain, start"
RUNS = 20_000
SESSIONS = (500, 20_000)
WIDTH = 30
WIDE = 200
SAMPLES = 1_000
START, INSERT = "submit → start", "bare INSERT"
NEAR, FAR = "submit → start, one of two nodes", "submit → start, from the other node"
NOTIFY = "bare NOTIFY"


@dataclass(slots=True)
class Found:
    """All that was measured of one store."""

    submits: dict[int, float] = field(default_factory=dict)
    drains: dict[int, float] = field(default_factory=dict)
    wide: float = 0.0
    spreads: dict[str, Spread] = field(default_factory=dict)


def run(quick: bool) -> Report:
    need("asyncpg")
    from bench._postgres import running_postgres

    scale = 20 if quick else 1
    found = {"memory": run_on_loop(_memory(scale))}
    with scratch() as folder:
        found["sqlite"] = run_on_loop(_sqlite(folder, scale))
        disk = describe_disk(folder)
    with running_postgres() as server:
        urls = [asyncio.run(server.new_database()) for _ in range(len(SESSIONS) + 2)]
        found["postgres"] = run_on_loop(_postgres(urls, scale))
        about = asyncio.run(server.describe())
    return Report(
        name="durable",
        columns=("what", *found),
        rows=_rows(found, RUNS // scale),
        figures=_figures(found),
        limits={
            "sqlite_drain_500": (">=", 10_000.0),
            "sqlite_start_vs_insert": ("<=", 5.0),
            "sqlite_start_vs_insert_p99": ("<=", 10.0),
            "postgres_start_vs_insert": ("<=", 5.0),
            "postgres_start_vs_insert_p99": ("<=", 10.0),
            "postgres_remote_extra_notifies": ("<=", 1.0),
        },
        peers=[(f"Headway, {name}", store.drains[SESSIONS[0]]) for name, store in found.items()],
        unit=f"runs a second, over {SESSIONS[0]} sessions",
        notes=(
            f"{disk}. {about}",
            f"{RUNS // scale:,} trivial runs, {WIDTH} at once.",
            "Another node has left them in the store when the measured one starts (memory: in a paused lane).",
            "Drained: from the first start until the last end is stored.",
            "Start: from the call of submit until the agent is called, one at a time, each in a new session.",
            "INSERT: the same row on a connection of its own, committed, in turn with the starts.",
            "From the other node: submitted there, started here; what that takes longer, in bare NOTIFYs.",
        ),
    )


async def _memory(scale: int) -> Found:
    found = Found()
    runs = RUNS // scale
    for sessions in SESSIONS:
        progress(f"memory, {sessions:,} sessions")
        found.submits[sessions], drained = await in_memory(runs, sessions, WIDTH)
        found.drains[sessions] = drained.rate
    _, drained = await in_memory(runs, SESSIONS[0], WIDE)
    found.wide = drained.rate
    starts = Starts()
    hw = headway(MEMORY, WIDTH)
    hw.agent(AGENT)(starts.agent)
    async with hw:
        found.spreads = await in_turn(SAMPLES // scale, {START: starts.asked_of(hw, "chat")})
    return found


async def _sqlite(folder: Path, scale: int) -> Found:
    found = Found()
    runs = RUNS // scale
    for sessions, width in _courses():
        progress(f"sqlite, {sessions:,} sessions, {width} at once")
        path = folder / f"{sessions}-{width}.db"
        submitted = await fill(f"sqlite:///{path}", runs, sessions)
        look = SqliteLook(path)
        drained = await drain(f"sqlite:///{path}", runs, width, look.all_ended)
        await look.close()
        _keep(found, sessions, width, submitted, drained.rate)
    progress("sqlite, starts")
    path = folder / "starts.db"
    starts = Starts()
    hw = headway(f"sqlite:///{path}", WIDTH)
    hw.agent(AGENT)(starts.agent)
    async with hw:
        insert = SqliteInsert(path)
        probes: dict[str, Probe] = {INSERT: insert, START: starts.asked_of(hw, "chat")}
        found.spreads = await in_turn(SAMPLES // scale, probes)
        insert.close()
    return found


async def _postgres(urls: Sequence[str], scale: int) -> Found:
    from bench._postgres import settle

    found = Found()
    runs = RUNS // scale
    for url, (sessions, width) in zip(urls, _courses(), strict=False):
        progress(f"postgres, {sessions:,} sessions, {width} at once")
        submitted = await fill(url, runs, sessions)
        await settle(url)
        look = await PostgresLook.open(url)
        drained = await drain(url, runs, width, look.all_ended)
        await look.close()
        _keep(found, sessions, width, submitted, drained.rate)
    progress("postgres, starts")
    url, samples = urls[-1], SAMPLES // scale
    starts = Starts()
    here, elsewhere = headway(url, WIDTH), headway(url, 0)
    here.agent(AGENT)(starts.agent)
    elsewhere.remote_agent(AGENT)
    async with here:
        insert = await PostgresInsert.open(url)
        probes: dict[str, Probe] = {INSERT: insert, START: starts.asked_of(here, "chat")}
        found.spreads = await in_turn(samples, probes)
        await insert.close()
        async with elsewhere:
            notify = await Notify.open(url)
            found.spreads |= await in_turn(
                samples,
                {
                    NEAR: starts.asked_of(here, "near"),
                    FAR: starts.asked_of(elsewhere, "far"),
                    NOTIFY: notify,
                },
            )
            await notify.close()
    return found


def _courses() -> Sequence[tuple[int, int]]:
    """How many sessions, and how many runs at once."""
    return (*((sessions, WIDTH) for sessions in SESSIONS), (SESSIONS[0], WIDE))


def _keep(found: Found, sessions: int, width: int, submitted: float, drained: float) -> None:
    if width == WIDE:
        found.wide = drained
    else:
        found.submits[sessions] = submitted
        found.drains[sessions] = drained


def _rows(found: Mapping[str, Found], runs: int) -> Sequence[Sequence[str | float]]:
    def row(what: str, values: Sequence[float | None]) -> Sequence[str | float]:
        return (what, *("–" if value is None else value for value in values))

    stores = list(found.values())
    rows = [
        row(f"{verb} a second, {runs:,} runs over {sessions:,} sessions", [
            (store.submits if verb == "submitted" else store.drains)[sessions] for store in stores
        ])
        for sessions in SESSIONS
        for verb in ("submitted", "drained")
    ]  # fmt: skip
    rows.append(
        row(
            f"drained a second, {SESSIONS[0]} sessions, {WIDE} at once",
            [store.wide for store in stores],
        )
    )
    for what in (START, INSERT, NEAR, FAR, NOTIFY):
        spreads = [store.spreads.get(what) for store in stores]
        rows.append(row(f"{what}, p50 ms", [None if one is None else one.p50 for one in spreads]))
        rows.append(row(f"{what}, p99 ms", [None if one is None else one.p99 for one in spreads]))
    return rows


def _figures(found: Mapping[str, Found]) -> dict[str, float]:
    figures: dict[str, float] = {}
    for name, store in found.items():
        for sessions in SESSIONS:
            figures[f"{name}_drain_{sessions}"] = store.drains[sessions]
            figures[f"{name}_submit_{sessions}"] = store.submits[sessions]
        figures[f"{name}_drain_{SESSIONS[0]}_at_{WIDE}"] = store.wide
        figures |= _latencies(name, store.spreads)
    return figures


def _latencies(name: str, spreads: Mapping[str, Spread]) -> dict[str, float]:
    start = spreads[START]
    figures = {f"{name}_start_p50_ms": start.p50, f"{name}_start_p99_ms": start.p99}
    insert = spreads.get(INSERT)
    if insert is not None:
        figures |= {
            f"{name}_insert_p50_ms": insert.p50,
            f"{name}_insert_p99_ms": insert.p99,
            f"{name}_start_vs_insert": start.p50 / insert.p50,
            f"{name}_start_vs_insert_p99": start.p99 / insert.p99,
        }
    if FAR in spreads:
        near, far, notify = (spreads[what] for what in (NEAR, FAR, NOTIFY))
        figures |= {
            f"{name}_remote_start_p50_ms": far.p50,
            f"{name}_remote_start_p99_ms": far.p99,
            f"{name}_notify_p50_ms": notify.p50,
            f"{name}_remote_extra_ms": far.p50 - near.p50,
            f"{name}_remote_extra_notifies": (far.p50 - near.p50) / notify.p50,
        }
    return figures
