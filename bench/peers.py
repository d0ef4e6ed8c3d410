"""How fast queues on PostgreSQL drain, all in one run, on one server: Headway and its peers."""

import asyncio
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from itertools import product
from statistics import median
from typing import TypeAlias

import msgspec

from bench._load import Broken, Drained
from bench.harness import Report, need, progress

TITLE = "Draining trivial jobs from one PostgreSQL"
PACKAGES = ("asyncpg", "procrastinate", "pgqueuer", "dbos")
JOBS = 20_000
"""As many as in `bench durable`."""
SESSIONS = 500
NARROW, WIDE = 30, 200
"""How many jobs may run at once."""
BATCH = 100
ROUNDS = 3
POLLING_S = 0.001
ENOUGH_S = 30.0
"""A slow contender is stopped then: its rate is known."""

Options: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Contender:
    """One way to drain, and how often it is measured: more often where chance counts more."""

    key: str
    label: str
    module: str
    width: int
    options: Options
    analysed: bool
    orders: str = "no"
    rounds: int = 1


def run(quick: bool) -> Report:
    need(*PACKAGES)
    from bench._postgres import running_postgres

    jobs, seconds = (JOBS // 10, 5.0) if quick else (JOBS, ENOUGH_S)
    contenders = [
        contender
        for width, analysed in product((NARROW, WIDE), (False, True))
        for contender in _contenders(width, analysed, seconds)
    ]
    drains: dict[str, list[Drained]] = {}
    with running_postgres() as server:
        for number in range(ROUNDS):
            for contender in contenders:
                if number < contender.rounds:
                    url = asyncio.run(server.new_database())
                    drained = _measure(contender, url, jobs)
                    asyncio.run(server.drop_database(url))
                    progress(f"{contender.key}: {drained.rate:,.0f} a second")
                    drains.setdefault(contender.key, []).append(drained)
        about = asyncio.run(server.describe())
    rates = {key: median(drained.rate for drained in found) for key, found in drains.items()}
    return Report(
        name="peers",
        columns=("what", "at once", "analysed", "keeps order", "jobs", "drained/s", "submitted/s"),
        rows=[
            (
                contender.label,
                contender.width or "any",
                "by hand" if contender.analysed else "as it comes",
                contender.orders,
                min(drained.runs for drained in drains[contender.key]),
                rates[contender.key],
                median(drained.submit_rate for drained in drains[contender.key]),
            )
            for contender in contenders
        ],
        figures=_ratios(rates) | {f"{key}_per_s": rate for key, rate in rates.items()},
        limits={
            "vs_pgqueuer": (">=", 1.5),
            f"vs_pgqueuer_{WIDE}": (">=", 1.5),
            "vs_procrastinate_lock": (">=", 50.0),
            f"vs_procrastinate_lock_{WIDE}": (">=", 50.0),
        },
        peers=[
            (f"{contender.label}, {contender.width or 'any'} at once", rates[contender.key])
            for contender in contenders
            if not contender.analysed
        ],
        unit="jobs a second",
        notes=_notes(about, jobs, seconds),
    )


def _contenders(width: int, analysed: bool, seconds: float) -> Sequence[Contender]:
    """All of one table: as many jobs may run at once for each, as far as a contender can be told so."""
    # PgQueuer takes no limit below twice its batch: for 30, the largest batch that it allows.
    batch = min(BATCH, width // 2)
    after = "_analysed" if analysed else ""

    def contender(
        name: str, label: str, module: str, rounds: int = 1, **options: object
    ) -> Contender:
        return Contender(
            key=f"{name}_{width}{after}",
            label=label,
            module=module,
            width=width,
            options={"concurrency": width, "analysed": analysed, **options},
            analysed=analysed,
            orders="by session" if options.get("sessions") else "no",
            rounds=rounds,
        )

    found = [
        contender("headway", "Headway", "headway", ROUNDS, sessions=SESSIONS),
        contender("pgqueuer", f"PgQueuer, batch {batch}", "pgqueuer", ROUNDS, batch=batch),
        contender("dbos", "DBOS queue", "dbos", polling=POLLING_S, seconds=seconds),
        contender(
            "procrastinate",
            "Procrastinate, no lock",
            "procrastinate",
            sessions=None,
            seconds=seconds,
        ),
        contender(
            "procrastinate_lock",
            "Procrastinate, lock = session",
            "procrastinate",
            ROUNDS,
            sessions=SESSIONS,
            seconds=seconds,
        ),
    ]
    if width == WIDE:
        unlimited = Contender(
            key=f"pgqueuer_unlimited{after}",
            label=f"PgQueuer, batch {BATCH}",
            module="pgqueuer",
            width=0,
            options={"concurrency": None, "analysed": analysed, "batch": BATCH},
            analysed=analysed,
            rounds=ROUNDS,
        )
        found.append(unlimited)
    return found


def _measure(contender: Contender, url: str, jobs: int) -> Drained:
    options = msgspec.json.encode({"url": url, "jobs": jobs, **contender.options}).decode()
    command = [sys.executable, "-W", "ignore", "-m", "bench.contenders", contender.module, options]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise Broken(f"{contender.key}: ended with {done.returncode}")
    return msgspec.json.decode(done.stdout.splitlines()[-1], type=Drained)


def _ratios(rates: Mapping[str, float]) -> dict[str, float]:
    """Ours by theirs, with as many at once and after the same preparation."""
    ratios = {}
    for after in ("", "_analysed"):
        for width, said in ((NARROW, ""), (WIDE, f"_{WIDE}")):
            ours = rates[f"headway_{width}{after}"]
            for peer in ("pgqueuer", "procrastinate_lock", "procrastinate", "dbos"):
                ratios[f"vs_{peer}{said}{after}"] = ours / rates[f"{peer}_{width}{after}"]
        best = max(rates[f"headway_{width}{after}"] for width in (NARROW, WIDE))
        ratios[f"vs_pgqueuer_unlimited{after}"] = best / rates[f"pgqueuer_unlimited{after}"]
    return ratios


def _notes(about: str, jobs: int, seconds: float) -> Sequence[str]:
    versions = ", ".join(f"{package} {metadata.version(package)}" for package in PACKAGES)
    return (
        about,
        f"{jobs:,} jobs, where ordered over {SESSIONS} sessions. All are stored before the first one starts.",
        "Drained: from the first start until the last end is stored. Each contender has a process of its own.",
        "As it comes: nothing is done between the last submission and the first start, for anyone.",
        "Analysed by hand: VACUUM, ANALYZE and CHECKPOINT between them, for everyone. Figures end in `_analysed`.",
        "Procrastinate's query for locked jobs needs these statistics; autovacuum brings them within minutes.",
        f"Who is not done after {seconds:.0f} s is stopped, and judged by the jobs that were done.",
        f"PgQueuer takes no limit below twice its batch: with {NARROW} at once its batch is {NARROW // 2}.",
        f"DBOS is polled every {POLLING_S * 1000:.0f} ms; by default it would be once a second.",
        f"Medians of {ROUNDS} rounds for Headway, PgQueuer, and Procrastinate with locks. With {versions}.",
    )
