"""How long ago, and how long: short, for tables."""

from headway.cli.views import instant
from headway.model.time import MILLISECOND, MINUTE, SECOND, Instant, Span, span_text


def ago(moment: str | None, now: Instant) -> str:
    """The age of a moment: `12s`, `3m10s`."""
    return "-" if moment is None else short(max(0, now - instant(moment)))


def between(start: str | None, end: str | None, now: Instant) -> str:
    """How long something takes that may still go on."""
    if start is None:
        return "-"
    return short((now if end is None else instant(end)) - instant(start))


def short(span: Span) -> str:
    """As exact as a glance needs it."""
    unit = MILLISECOND if span < SECOND else SECOND // 10 if span < MINUTE else SECOND
    return span_text(max(0, span) // unit * unit)
