"""When a job fires, as it was asked for. The arithmetic is in `core.schedule`.

Each schedule carries the IANA time zone that its owner thinks in. For `cron` it decides; for `at` and `every`
it says only how their instants are shown, and is kept so that a later change to `cron` needs no second question.
"""

from typing import TypeAlias

from headway.model.time import Instant, Span
from headway.model.value import Value

UTC_ZONE = "UTC"


class At(Value, frozen=True, tag="at"):
    """Once, at an instant."""

    at: Instant
    zone: str = UTC_ZONE


class Every(Value, frozen=True, tag="every"):
    """Again and again: the n-th firing is at `anchor` + n × `period`, whatever became of those before."""

    period: Span
    anchor: Instant
    zone: str = UTC_ZONE


class Cron(Value, frozen=True, tag="cron"):
    """When the wall clock of `zone` matches a cron expression of five fields."""

    expression: str
    zone: str = UTC_ZONE


Schedule: TypeAlias = At | Every | Cron
