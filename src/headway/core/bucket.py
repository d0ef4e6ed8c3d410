"""A token bucket in whole numbers (X-6): exact, and without a clock of its own."""

from headway.model.time import MINUTE, Instant


class Bucket:
    """Holds up to one minute's worth. May go into debt, for costs that are known only afterwards.

    The level is kept in token-microseconds, so that refilling by `per_minute` each microsecond of a minute adds
    exactly `per_minute` tokens.
    """

    __slots__ = ("_at", "_level", "per_minute")

    def __init__(self, per_minute: int, now: Instant) -> None:
        self.per_minute = per_minute
        self._level = per_minute * MINUTE
        self._at = now

    def _refill(self, now: Instant) -> None:
        if now > self._at:
            full = self.per_minute * MINUTE
            self._level = min(full, self._level + (now - self._at) * self.per_minute)
            self._at = now

    def has_one(self, now: Instant) -> bool:
        self._refill(now)
        return self._level >= MINUTE

    def take(self, count: int, now: Instant) -> None:
        self._refill(now)
        self._level -= count * MINUTE

    def next_at(self, now: Instant) -> Instant:
        """The first instant at which the bucket has one whole token again."""
        self._refill(now)
        short = MINUTE - self._level
        return now if short <= 0 else now - (-short // self.per_minute)
