"""The instants at which a schedule fires."""

from collections.abc import Iterator
from functools import lru_cache
from hashlib import blake2b
from typing import assert_never

from headway.core.schedule.expression import Expression, parse
from headway.core.schedule.zones import FIRST_WINDOW, LAST_WINDOW, WINDOW, stretches
from headway.model.schedule import At, Cron, Every, Schedule
from headway.model.time import SECOND, Instant, Span

_LAST: Instant = (LAST_WINDOW + 1) * WINDOW * SECOND


def next_after(schedule: Schedule, instant: Instant) -> Instant | None:
    """The first firing after an instant, and not at it; None if there is no more."""
    match schedule:
        case Cron():
            second = _next_match(parse(schedule.expression), schedule.zone, instant // SECOND)
            return None if second is None else second * SECOND
        case Every():
            if instant < schedule.anchor:
                return schedule.anchor
            following = instant + schedule.period - (instant - schedule.anchor) % schedule.period
            return following if following < _LAST else None
        case At():
            return schedule.at if schedule.at > instant else None
        case _:
            assert_never(schedule)


def latest(schedule: Schedule, instant: Instant) -> Instant | None:
    """The last firing that is not after an instant; None if there was none."""
    match schedule:
        case Cron():
            second = _last_match(parse(schedule.expression), schedule.zone, instant // SECOND)
            return None if second is None else second * SECOND
        case Every():
            if instant < schedule.anchor:
                return None
            return instant - (instant - schedule.anchor) % schedule.period
        case At():
            return schedule.at if schedule.at <= instant else None
        case _:
            assert_never(schedule)


def missed(schedule: Schedule, from_: Instant, to: Instant) -> Iterator[Instant]:
    """The firings from one instant to another, both included, in order, each found when it is asked for."""
    firing = next_after(schedule, from_ - 1)
    while firing is not None and firing <= to:
        yield firing
        firing = next_after(schedule, firing)


def count(schedule: Schedule, from_: Instant, to: Instant) -> int:
    """How many firings there are from one instant to another, both included, without walking through them."""
    match schedule:
        case Cron():
            since, until = -(-from_ // SECOND), to // SECOND + 1
            return _matches(parse(schedule.expression), schedule.zone, since, until)
        case Every():
            since = max(from_, schedule.anchor)
            before = (since - 1 - schedule.anchor) // schedule.period
            return max(0, (to - schedule.anchor) // schedule.period - before) if to >= since else 0
        case At():
            return int(from_ <= schedule.at <= to)
        case _:
            assert_never(schedule)


@lru_cache(maxsize=16_384)
def offset(job_id: str, stagger: Span) -> Span:
    """How much later than its schedule a job fires: the same on every node and after every restart (C-8)."""
    if stagger <= 0:
        return 0
    return int.from_bytes(blake2b(job_id.encode(), digest_size=8).digest(), "big") % stagger


def next_firing(schedule: Schedule, stagger: Span, job_id: str, after: Instant) -> Instant | None:
    """The first firing of a job after an instant, its stagger included."""
    late = offset(job_id, stagger)
    firing = next_after(schedule, after - late)
    return None if firing is None else firing + late


def _next_match(expression: Expression, zone: str, second: int) -> int | None:
    """The first second after `second` at which the expression fires.

    The wall time of a stretch begins where that of the one before has ended. An expression that follows real
    time instead begins with what the clock shows then: it loses what is skipped and gains what is repeated.
    What matches within a gap fires at its end: at the start of the stretch.
    """
    searched, found = 0, -1
    for window in range(second // WINDOW, LAST_WINDOW + 1):
        for start, end, ahead, before in stretches(zone, window):
            if end <= second:
                continue
            begin = start + (ahead if expression.real_time else before)
            if start <= second:
                begin = max(begin, second + ahead + 1)
            if not searched <= begin <= found:
                match = expression.first(begin)
                if match is None:
                    return None
                searched, found = begin, match
            if found < end + ahead:
                return max(start, found - ahead)
    return None


def _last_match(expression: Expression, zone: str, second: int) -> int | None:
    """The last second up to `second` at which the expression fires."""
    found, searched = 0, -1
    for window in range(second // WINDOW, FIRST_WINDOW - 1, -1):
        for start, end, ahead, before in reversed(stretches(zone, window)):
            if start > second:
                continue
            begin = start + (ahead if expression.real_time else before)
            until = min(end - 1, second) + ahead
            if not found <= until <= searched:
                match = expression.last(until)
                if match is None:
                    return None
                found, searched = match, until
            if found >= begin:
                return max(start, found - ahead)
    return None


def _matches(expression: Expression, zone: str, since: int, until: int) -> int:
    """How often the expression fires from `since` until just before `until`."""
    total = 0
    for window in range(since // WINDOW, min(until // WINDOW, LAST_WINDOW) + 1):
        for start, end, ahead, before in stretches(zone, window):
            first, last = max(start, since), min(end, until)
            if first >= last:
                continue
            begin = first + ahead
            if not expression.real_time:
                begin = max(begin, start + before)
                if first == start and expression.count(start + before, begin):
                    # All that matches in the gap is one firing, at the instant after it.
                    total += not expression.count(begin, begin + 1)
            total += expression.count(begin, last + ahead)
    return total
