"""The load of `bench timers`: very many jobs, a thousand of them due at the same instant."""

import asyncio
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from statistics import median

from bench._load import Broken
from headway.model.schedule import Cron, Every
from headway.model.time import DAY, SECOND, Instant, Span, as_datetime

AHEAD_S = 5.0
"""By at least so long all jobs are in the store before they are due."""
ADDING_S = 120.0
"""Who has not taken all jobs by then goes on with those that he has."""
PATIENCE_S = 300.0
_MONTHS_OFF = 2
_MONTHS = 9


@dataclass(frozen=True, slots=True)
class Lateness:
    """From the instant at which jobs were due until they were called, in milliseconds."""

    jobs: int
    """How many were in the store."""
    added_per_s: float
    p50: float
    p99: float
    first: float
    """Below 0 it was too early."""
    last: float

    @classmethod
    def of(cls, rounds: Sequence[Sequence[Span]], jobs: int, added_per_s: float) -> "Lateness":
        """Medians over the rounds, each of which stands for itself; the first and the last over all."""
        found = [[late / 1000 for late in sorted(spans)] for spans in rounds]
        return cls(
            jobs,
            added_per_s,
            p50=median(late[len(late) // 2] for late in found),
            p99=median(late[len(late) * 99 // 100] for late in found),
            first=min(late[0] for late in found),
            last=max(late[-1] for late in found),
        )


class Starts:
    """Called by each job that starts, from whatever thread."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self._jobs: set[str] = set()
        self._lock = threading.Lock()

    def note(self, job: str, due_at: Instant) -> None:
        now = time.time_ns() // 1000
        with self._lock:
            self.spans.append(now - due_at)
            self._jobs.add(job)

    async def all_of(self, jobs: int) -> None:
        """Wait until so many have started: each of them once, or the figure would mean nothing."""
        async with asyncio.timeout(PATIENCE_S):
            # Seldom: who looks takes time from what is measured.
            while len(self.spans) < jobs:  # noqa: ASYNC110 - they may start in threads
                await asyncio.sleep(0.5)
        if not len(self.spans) == len(self._jobs) == jobs:
            raise Broken(f"{len(self.spans)} starts of {len(self._jobs)} jobs; {jobs} were due")


def far(number: int, now: datetime) -> Cron | Every:
    """Due in months: every other job by an expression, the rest by a period."""
    if number % 2:
        period = (60 + number % 200) * DAY
        return Every(period, _instant(now) + period + number % 3_600 * SECOND)
    month = (now.month - 1 + _MONTHS_OFF + number % _MONTHS) % 12 + 1
    minute, hour, day = number % 60, number // 60 % 24, number // 1_440 % 28 + 1
    return Cron(f"{minute} {hour} {day} {month} *")


def near(number: int, at: Instant) -> Cron | Every:
    """Due at this whole minute, and then not for months: likewise one or the other."""
    if number % 2:
        return Every(60 * DAY, at)
    then = as_datetime(at)
    return Cron(f"{then.minute} {then.hour} {then.day} {then.month} *")


def next_minute(seconds: float = 0.0) -> Instant:
    """The next whole minute that leaves so many seconds to add what is due then, and some more."""
    soon = datetime.now(UTC) + timedelta(seconds=seconds + AHEAD_S)
    return _instant(soon.replace(second=0, microsecond=0) + timedelta(minutes=1))


def _instant(at: datetime) -> Instant:
    return round(at.timestamp()) * SECOND
