"""What was measured, worked out and told."""

import math
from collections.abc import Sequence

from headway.cli.answers import lines_of
from headway.model.time import SECOND, Span
from headway.model.value import Value


class Measured(Value, frozen=True):
    """What came of the load."""

    tasks: int
    concurrency: int
    took: Span
    """From the first question to the last answer."""
    latencies: tuple[Span, ...]
    """Of each task that was taken: from the question that was answered with yes to its answer."""
    refused: int
    """How often the server said that its queue was full; each was asked again."""
    done: int
    """How many tasks ended well."""
    done_after: Span | None
    """When the last one had ended, from the first question on; None: that was not waited for."""


class Figures(Value, frozen=True, rename="camel"):
    """For programs: seconds and rates."""

    tasks: int
    concurrency: int
    taken: int
    seconds: float
    per_second: float
    p50_ms: float
    p99_ms: float
    max_ms: float
    refused: int
    done: int
    done_seconds: float | None
    done_per_second: float | None


def figures(measured: Measured) -> Figures:
    taken = len(measured.latencies)
    after = measured.done_after
    return Figures(
        tasks=measured.tasks,
        concurrency=measured.concurrency,
        taken=taken,
        seconds=_seconds(measured.took),
        per_second=_rate(taken, measured.took),
        p50_ms=_ms(quantile(measured.latencies, 0.50)),
        p99_ms=_ms(quantile(measured.latencies, 0.99)),
        max_ms=_ms(quantile(measured.latencies, 1.0)),
        refused=measured.refused,
        done=measured.done,
        done_seconds=None if after is None else _seconds(after),
        done_per_second=None if after is None else _rate(measured.done, after),
    )


def figure_lines(found: Figures, agent: str) -> str:
    rows = [
        (
            "taken",
            f"{found.taken} tasks for {agent} in {found.seconds:.2f} s, {found.concurrency} at once",
        ),
        ("rate", f"{found.per_second:.0f}/s"),
        (
            "latency",
            f"p50 {found.p50_ms:.1f} ms, p99 {found.p99_ms:.1f} ms, max {found.max_ms:.1f} ms",
        ),
    ]
    if found.refused:
        rows.append(
            (
                "refused",
                f"{found.refused} times: the queue was full; asked again, so the rate is the queue's",
            )
        )
    if found.done_seconds is not None:
        rate = f"{found.done_per_second:.0f}/s" if found.done_per_second is not None else ""
        rows.append(("done", f"{found.done} after {found.done_seconds:.2f} s, {rate}"))
    return lines_of(rows)


def quantile(values: Sequence[int], part: float) -> int:
    """The smallest value that at least this part of all does not exceed."""
    if not values:
        return 0
    return sorted(values)[max(0, math.ceil(part * len(values)) - 1)]


def _seconds(span: Span) -> float:
    return round(span / SECOND, 3)


def _ms(span: Span) -> float:
    return round(span / 1_000, 2)


def _rate(count: int, span: Span) -> float:
    return round(count / max(span / SECOND, 1e-6), 1)
