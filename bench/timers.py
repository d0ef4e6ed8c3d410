"""Jobs on time: very many in the store, a thousand due at once, beside APScheduler with the same load."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata

from bench._disk import describe_disk, scratch
from bench._due import ADDING_S, Lateness, Starts, far, near, next_minute
from bench.harness import Report, need, progress
from headway import Headway, Turn
from headway.model.schedule import Cron, Every
from headway.wiring import run as run_on_loop

TITLE = "1,000 of 100,000 jobs due at the same instant: how late they start"
PACKAGES = ("asyncpg", "apscheduler", "sqlalchemy", "psycopg")
AGENTS = 20
WAVE = 1_000
"""How many jobs are being added at once."""
SETTLE_S = 5.0


@dataclass(frozen=True, slots=True)
class Load:
    """What is measured."""

    jobs: int = 100_000
    due: int = 1_000
    rounds: int = 3
    """So many times others are due together; chance counts for more where all is over soon."""
    seconds: float = 20.0


@dataclass(frozen=True, slots=True)
class Found:
    """What was measured of Headway on one store."""

    late: Lateness
    idle_pct: float


def run(quick: bool) -> Report:
    need(*PACKAGES)
    from bench._postgres import running_postgres, settle
    from bench.contenders import apscheduler

    load = Load(2_000, 100, 1, 2.0) if quick else Load()
    ours: dict[str, Found] = {}
    theirs: dict[str, Lateness] = {}
    with scratch() as folder:
        disk = describe_disk(folder)
        url = f"sqlite:///{folder / 'timers.db'}"
        added_per_s = run_on_loop(_fill(url, load))
        ours["sqlite"] = run_on_loop(_measure(url, load, added_per_s))
        progress("sqlite, APScheduler")
        theirs["sqlite"] = run_on_loop(apscheduler.sqlite(folder / "peer.db", load.jobs, load.due))
    with running_postgres() as server:
        url = asyncio.run(server.new_database())
        added_per_s = run_on_loop(_fill(url, load))
        asyncio.run(settle(url))
        ours["postgres"] = run_on_loop(_measure(url, load, added_per_s))
        asyncio.run(server.drop_database(url))
        progress("postgres, APScheduler")
        url = asyncio.run(server.new_database())
        theirs["postgres"] = run_on_loop(apscheduler.postgres(url, load.jobs, load.due))
        about = asyncio.run(server.describe())
    late = {
        **{f"Headway, {name}": found.late for name, found in ours.items()},
        **{f"APScheduler, {name}": found for name, found in theirs.items()},
    }
    return Report(
        name="timers",
        columns=("what", "jobs", "added/s", "first ms", "p50 ms", "p99 ms", "last ms"),
        rows=[
            (
                what,
                found.jobs,
                found.added_per_s,
                found.first,
                found.p50,
                found.p99,
                found.last,
            )
            for what, found in late.items()
        ],
        figures=_figures(ours, theirs),
        limits={
            **{f"{name}_p99_late_ms": ("<=", 250.0) for name in ours},
            "idle_cpu_pct": ("<", 1.0),
        },
        peers=[(what, found.p99) for what, found in late.items()],
        unit="ms from due to start, p99",
        notes=_notes(load, f"{disk}. {about}", ours),
    )


async def _fill(url: str, load: Load) -> float:
    """All the jobs that are not due for months; answers how many were added a second."""
    hw = Headway(url)
    now, jobs = datetime.now(UTC), load.jobs - load.due * load.rounds
    async with hw:
        began = time.perf_counter()
        for first in range(0, jobs, WAVE):
            await _add(
                hw,
                {
                    f"far-{number}": far(number, now)
                    for number in range(first, min(first + WAVE, jobs))
                },
            )
        rate = jobs / (time.perf_counter() - began)
    progress(f"{url.partition(':')[0]}, {jobs:,} jobs, {rate:,.0f} added a second")
    return rate


async def _measure(url: str, load: Load, added_per_s: float) -> Found:
    """A new node on the store that holds them: how late jobs start, and what it costs while none is due."""
    hw = Headway(url)
    rounds: list[Starts] = []

    async def agent(turn: Turn) -> str:
        firing = turn.run.firing
        assert firing is not None
        rounds[-1].note(firing.job, firing.due_at)
        return turn.text

    for number in range(AGENTS):
        hw.agent(_agent(number))(agent)
    async with hw:
        for number in range(load.rounds):
            at = next_minute()
            await _add(hw, {f"near-{number}-{place}": near(place, at) for place in range(load.due)})
            rounds.append(Starts())
            await rounds[-1].all_of(load.due)
            progress(f"round {number + 1}, the last {max(rounds[-1].spans) / 1000:.0f} ms late")
        await asyncio.sleep(SETTLE_S)
        progress(f"idle for {load.seconds:.0f} s")
        used, began = time.process_time(), time.perf_counter()
        await asyncio.sleep(load.seconds)
        idle_pct = (time.process_time() - used) / (time.perf_counter() - began) * 100
    spans = [starts.spans for starts in rounds]
    return Found(Lateness.of(spans, load.jobs, added_per_s), idle_pct)


async def _add(hw: Headway, jobs: Mapping[str, Cron | Every]) -> None:
    await asyncio.gather(
        *[
            hw.jobs.add(name, _agent(number), text="hello", schedule=schedule)
            for number, (name, schedule) in enumerate(jobs.items())
        ]
    )


def _agent(number: int) -> str:
    return f"agent-{number % AGENTS}"


def _figures(ours: Mapping[str, Found], theirs: Mapping[str, Lateness]) -> dict[str, float]:
    figures: dict[str, float] = {}
    for name, found in ours.items():
        figures |= {
            f"{name}_p99_late_ms": found.late.p99,
            f"{name}_p50_late_ms": found.late.p50,
            f"{name}_max_late_ms": found.late.last,
            f"{name}_idle_cpu_pct": found.idle_pct,
            f"{name}_jobs_added_per_s": found.late.added_per_s,
        }
    figures["idle_cpu_pct"] = max(found.idle_pct for found in ours.values())
    for name, late in theirs.items():
        figures[f"apscheduler_{name}_p99_late_ms"] = late.p99
        figures[f"vs_apscheduler_{name}"] = late.p99 / ours[name].late.p99
    return figures


def _notes(load: Load, about: str, ours: Mapping[str, Found]) -> Sequence[str]:
    idle = ", ".join(f"{name} {found.idle_pct:.2f}" for name, found in ours.items())
    versions = ", ".join(
        f"{name} {metadata.version(name)}" for name in ("apscheduler", "sqlalchemy")
    )
    return (
        about,
        f"{load.jobs:,} enabled jobs of {AGENTS} agents, half of them cron expressions, half periods.",
        f"{load.due:,} are due at the same whole minute: {load.rounds} times for Headway, once for APScheduler.",
        "Late: from that instant until the agent is called, by the machine's clock. Each job was called once.",
        "Medians of the rounds; first and last of all rounds.",
        "Headway with all settings as by default: 30 runs at once. Each start and each end is stored.",
        f"Idle: a node on the same store, none due, over {load.seconds:.0f} s, % of a core: {idle}.",
        f"APScheduler has as many jobs as it took within {ADDING_S:.0f} s, if that is less than all.",
        f"It stores no starts and no ends. Its misfire_grace_time is None. With {versions}.",
    )
