"""When jobs fire next: 10,000 mixed expressions in several time zones, beside croniter on the same ones."""

import gc
import random
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from statistics import median
from typing import TypeVar

from croniter import croniter

from bench.harness import Report, progress
from headway.core.schedule import cron, every, expression, next_after, zones
from headway.model.schedule import Schedule
from headway.model.time import HOUR, SECOND, Instant, instant_of

TITLE = "Next firing of mixed cron expressions beside croniter"
JOBS = 10_000
ROUNDS = 5
SEED = 20_260
START = datetime(2026, 8, 12, 14, 3, 27, tzinfo=UTC)
ZONES = (
    "UTC",
    "America/New_York",
    "America/Sao_Paulo",
    "Europe/Paris",
    "Europe/London",
    "Asia/Kolkata",
    "Asia/Tokyo",
    "Australia/Lord_Howe",
)
Thing = TypeVar("Thing")
Answer = TypeVar("Answer")
NICKNAMES = ("@hourly", "@daily", "@weekly", "@monthly", "@yearly")


def run(quick: bool) -> Report:
    jobs = _jobs(JOBS // 10 if quick else JOBS)
    firsts, nexts, periods = [], [], []
    differ = 0
    for number in range(ROUNDS + 1):
        progress(f"round {number} of {ROUNDS}")
        now = instant_of(START, "START") + number * HOUR
        first_us, schedules = _read(jobs, now)
        peer_first_us, peers = _read_by_croniter(jobs, _starts(now))
        next_us, found = _again(schedules, now + HOUR)
        peer_next_us, peers_found = _again_by_croniter(jobs, peers, _starts(now + HOUR))
        period_us, _ = _again(_periods(len(jobs), now), now + HOUR)
        if number:
            firsts.append((first_us, peer_first_us))
            nexts.append((next_us, peer_next_us))
            periods.append(period_us)
            differ += sum(
                ours != round(theirs) * SECOND
                for ours, theirs in zip(found, peers_found, strict=True)
            )
    first, next_ = _Pair(firsts), _Pair(nexts)
    return Report(
        name="schedule",
        columns=("what", "µs, Headway", "µs, croniter", "times as fast"),
        rows=(
            ("read an expression, first firing", first.ours, first.theirs, first.ratio),
            ("next firing of one that was read", next_.ours, next_.theirs, next_.ratio),
            ("next firing of a period", median(periods), "–", "–"),
        ),
        figures={
            "vs_croniter": min(first.ratio, next_.ratio),
            "read_vs_croniter": first.ratio,
            "next_vs_croniter": next_.ratio,
            "read_us": first.ours,
            "next_us": next_.ours,
            "differ": differ,
        },
        limits={"vs_croniter": (">=", 1.0), "differ": ("<=", 0)},
        peers=(("croniter", next_.theirs), ("Headway", next_.ours)),
        unit="µs a next firing",
        notes=(
            f"{len(jobs):,} expressions, {len(set(jobs)):,} of them different, in {len(ZONES)} zones.",
            "First row: Headway has forgotten all it had read. Second row: croniter has kept its objects.",
            f"The two gave different instants {differ:,} times.",
        ),
    )


class _Pair:
    """Costs of ours and theirs, measured in turn."""

    def __init__(self, costs: Sequence[tuple[float, float]]) -> None:
        self.ours = median(ours for ours, _ in costs)
        self.theirs = median(theirs for _, theirs in costs)
        self.ratio = median(theirs / ours for ours, theirs in costs)


def _starts(now: Instant) -> dict[str, datetime]:
    """What croniter starts from; made beforehand, at no cost to it."""
    return {zone: zones.local(now, zone) for zone in ZONES}


def _periods(number: int, now: Instant) -> list[Schedule]:
    return [every("10m", "UTC", now + place) for place in range(number)]


def _jobs(number: int) -> list[tuple[str, str]]:
    """Expressions such as people have, each with its zone; always the same ones."""
    chance = random.Random(SEED)
    return [(_expression(chance), chance.choice(ZONES)) for _ in range(number)]


def _expression(chance: random.Random) -> str:
    minute, hour, day = chance.randrange(60), chance.randrange(24), chance.randrange(1, 29)
    return chance.choice(
        (
            chance.choice(NICKNAMES),
            f"*/{chance.choice((1, 2, 5, 10, 15, 30))} * * * *",
            f"{minute} * * * *",
            f"{minute} */{chance.choice((2, 3, 4, 6))} * * *",
            f"{minute} {hour} * * *",
            f"{minute} {hour} * * 1-5",
            f"{minute} {hour} * * {chance.choice(('mon', 'wed', 'fri', '6', '0'))}",
            f"{minute},{(minute + 20) % 60} 9-17 * * mon-fri",
            f"{minute} {hour} {day} * *",
            f"{minute} {hour} {day},{day % 28 + 1} 1,4,7,10 *",
            f"{minute} {hour} {day} {chance.randrange(1, 13)} *",
        )
    )


def _read(jobs: Sequence[tuple[str, str]], now: Instant) -> tuple[float, list[Schedule]]:
    for remembered in (expression.parse, expression.days_of_month, zones.stretches):
        remembered.cache_clear()
    return _timed(lambda job: _first(*job, now), jobs)


def _first(text: str, zone: str, now: Instant) -> Schedule:
    schedule = cron(text, zone, now)
    next_after(schedule, now)
    return schedule


def _read_by_croniter(
    jobs: Sequence[tuple[str, str]], starts: Mapping[str, datetime]
) -> tuple[float, list[croniter]]:
    return _timed(lambda job: _first_by_croniter(job[0], starts[job[1]]), jobs)


def _first_by_croniter(text: str, start: datetime) -> croniter:
    peer = croniter(text, start)
    peer.get_next(float)
    return peer


def _again(schedules: Sequence[Schedule], now: Instant) -> tuple[float, list[Instant | None]]:
    return _timed(lambda schedule: next_after(schedule, now), schedules)


def _again_by_croniter(
    jobs: Sequence[tuple[str, str]], peers: Sequence[croniter], starts: Mapping[str, datetime]
) -> tuple[float, list[float]]:
    return _timed(
        lambda pair: pair[0].get_next(float, start_time=starts[pair[1][1]]),
        list(zip(peers, jobs, strict=True)),
    )


def _timed(call: Callable[[Thing], Answer], things: Sequence[Thing]) -> tuple[float, list[Answer]]:
    """What one call costs, in microseconds, and all answers."""
    gc.collect()
    began = time.perf_counter()
    answers = [call(thing) for thing in things]
    return (time.perf_counter() - began) / len(things) * 1e6, answers
