"""When jobs fire (C-2, C-3, C-4, C-8): from what a person wrote to the instants it means, and nothing else.

`reading` checks and takes in; `instants` answers; `expression` knows which wall times a cron expression matches,
and `zones` how wall clocks run. cronsim reads the fields of an expression and judges days. The way through hours
and through changes of the clock is walked here: cronsim loses or invents firings where a clock moves by half an
hour or at midnight, and the firings of 100,000 jobs must be cheap to find, forwards, backwards and by number.

Every answer depends on the arguments and on the time zone data alone, so any two nodes give the same. If one were
off, a job would fire twice, or not at all.
"""

from headway.core.schedule.instants import (
    count,
    latest,
    missed,
    next_after,
    next_firing,
    offset,
)
from headway.core.schedule.reading import at, cron, every
from headway.core.schedule.zones import instant_at, local, zone_name

__all__ = [
    "at",
    "count",
    "cron",
    "every",
    "instant_at",
    "latest",
    "local",
    "missed",
    "next_after",
    "next_firing",
    "offset",
    "zone_name",
]
