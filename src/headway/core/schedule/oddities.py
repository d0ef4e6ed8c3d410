"""Where a firing meets a change of the clocks: what a person should know about its wall time (C-4)."""

from datetime import timedelta

from headway.core.schedule.expression import parse
from headway.core.schedule.zones import local
from headway.model.schedule import Cron, Schedule
from headway.model.time import SECOND, Instant


def oddity(schedule: Schedule, firing: Instant) -> str:
    """What is odd about the wall time of a firing, in words; empty if nothing is."""
    shown = local(firing, schedule.zone)
    offset, before = shown.utcoffset(), local(firing - 1, schedule.zone).utcoffset()
    assert offset is not None
    assert before is not None
    if offset > before:
        return _after_gap(schedule, firing, offset, offset - before)
    if shown.replace(fold=0).utcoffset() == shown.replace(fold=1).utcoffset():
        return ""
    clock = f"{shown:%H:%M}"
    if isinstance(schedule, Cron) and not parse(schedule.expression).real_time:
        return f"{clock} comes twice that day: it fires the first time only"
    which = "second" if shown.fold else "first"
    return f"{clock} comes twice that day: this is the {which} time"


def _after_gap(schedule: Schedule, firing: Instant, offset: timedelta, gap: timedelta) -> str:
    """The firing is at the very end of a gap: either it is meant, or what was meant does not exist."""
    end = firing // SECOND + int(offset.total_seconds())
    start = end - int(gap.total_seconds())
    clocks = f"the clocks go from {_clock(start)} to {_clock(end)}"
    if isinstance(schedule, Cron):
        expression = parse(schedule.expression)
        meant = expression.first(start)
        if not expression.real_time and meant is not None and meant < end:
            return f"{_clock(meant)} does not exist that day: {clocks}"
    return f"{clocks} at that moment"


def _clock(wall: int) -> str:
    hours, minutes = divmod(wall // 60 % 1440, 60)
    return f"{hours:02}:{minutes:02}"
