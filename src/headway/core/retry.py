"""When a failed attempt is tried again (C-9). One rule for every source."""

from headway.model.time import MINUTE, SECOND, Span

FIRST_DELAY: Span = 2 * SECOND
LONGEST_DELAY: Span = 30 * SECOND
JITTER = 0.25
HELD_FOR: Span = MINUTE
"""While one node tries a delivery, no other does, for so long: longer than any wait between two tries."""


def delay(retry: int, jitter: float) -> Span:
    """How long to wait before retry number `retry` (from 0): 2, 4, 8 s … at most 30 s, ± 25 %.

    `jitter` is a number from 0 to 1 that the caller draws; 0.5 is the middle.
    """
    plain = min(FIRST_DELAY << min(retry, 10), LONGEST_DELAY)
    return round(plain * (1 + JITTER * (2 * jitter - 1)))
