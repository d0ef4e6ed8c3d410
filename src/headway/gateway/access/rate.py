"""How often each token may ask: a bucket that fills steadily and empties by one with each request."""

from collections import OrderedDict

from headway.model.time import MINUTE, SECOND, Instant

MOST_BUCKETS = 10_000


class Rates:
    """A bucket for each token. Those that have not asked for longest are forgotten first."""

    def __init__(self, per_minute: int | None) -> None:
        self._per_minute = per_minute
        self._buckets: OrderedDict[str, tuple[float, Instant]] = OrderedDict()

    def take(self, name: str, now: Instant) -> int:
        """0 if the token may ask now; else in how many seconds."""
        most = self._per_minute
        if most is None:
            return 0
        left, at = self._buckets.pop(name, (float(most), now))
        left = min(float(most), left + (now - at) * most / MINUTE)
        taken = left >= 1
        self._buckets[name] = (left - 1 if taken else left, now)
        if len(self._buckets) > MOST_BUCKETS:
            self._buckets.popitem(last=False)
        if taken:
            return 0
        return max(1, -int(-(1 - left) * MINUTE // (most * SECOND)))
