"""Counters and histograms as plain tables: one step for each event, all the rest when somebody looks.

`prometheus_client` has counters of its own. They take a lock each time, which costs as much as the event itself;
here all is counted on one thread.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric

from headway.model.time import SECOND, Span

Labels: TypeAlias = tuple[str, ...]

OTHER = "other"
MOST_NAMES = 100
"""Lanes can be made at any time; so many have numbers of their own, and the rest share some."""

MOMENTS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""For what takes a moment: a look into the store, an answer over HTTP."""
TURNS_S = (0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0, 3600.0)
"""For what takes as long as agents take."""


class Counter:
    """Counts by labels."""

    def __init__(self, name: str, about: str, labels: Sequence[str]) -> None:
        self._name = name
        self._about = about
        self._labels = tuple(labels)
        self.counts: defaultdict[Labels, int] = defaultdict(int)

    def collect(self) -> Iterator[Metric]:
        family = CounterMetricFamily(self._name, self._about, labels=self._labels)
        for labels, count in sorted(self.counts.items()):
            family.add_metric(labels, count)
        yield family


class Histogram:
    """How long things took, by labels. Spans are kept as they come; seconds are made when somebody looks."""

    def __init__(
        self, name: str, about: str, labels: Sequence[str], bounds_s: Sequence[float]
    ) -> None:
        self._name = name
        self._about = about
        self._labels = tuple(labels)
        self._names = [*map(str, bounds_s), "+Inf"]
        self._bounds = [round(bound * SECOND) for bound in bounds_s]
        self._rows: dict[Labels, list[int]] = {}
        """For each set of labels how many fell into each bucket; the sum of all is behind them."""

    def observe(self, labels: Labels, took: Span) -> None:
        row = self._rows.get(labels)
        if row is None:
            row = self._rows[labels] = [0] * (len(self._bounds) + 2)
        row[bisect_left(self._bounds, took)] += 1
        row[-1] += took

    def collect(self) -> Iterator[Metric]:
        family = HistogramMetricFamily(self._name, self._about, labels=self._labels)
        for labels, (*counts, total) in sorted(self._rows.items()):
            below = 0
            buckets: list[tuple[str, float]] = []
            for name, count in zip(self._names, counts, strict=True):
                below += count
                buckets.append((name, below))
            family.add_metric(labels, buckets, total / SECOND)
        yield family


class Names:
    """Keeps a label closed: names beyond a number of them are all told as one."""

    def __init__(self, most: int = MOST_NAMES) -> None:
        self._most = most
        self._known: dict[str, str] = {}

    def label(self, name: str) -> str:
        known = self._known.get(name)
        if known is None:
            if len(self._known) >= self._most:
                return OTHER
            known = self._known[name] = name
        return known
