"""Waiting for what other processes do."""

import asyncio
import time
from collections.abc import Awaitable, Callable

WITHIN_S = 60.0
"""So long that only what never happens fails: machines that test stand still for seconds at times."""


async def until(
    what: Callable[[], bool | Awaitable[bool]], why: str, within_s: float = WITHIN_S
) -> None:
    """Until it is so; fails with the reason if it never is."""
    give_up_at = time.monotonic() + within_s
    while True:
        so = what()
        if so if isinstance(so, bool) else await so:
            return
        assert time.monotonic() < give_up_at, f"not within {within_s:.0f} s: {why}"
        await asyncio.sleep(0.02)
