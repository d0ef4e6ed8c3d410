"""Numbers for Prometheus."""

import asyncio

from headway.gateway.access.caller import Caller
from headway.gateway.desk import Desk
from headway.gateway.metrics import MetricsPage
from headway.gateway.metrics.snapshot import Snapshot
from headway.gateway.operations import operation
from headway.model.errors import NotRunning, Unavailable
from headway.model.words import Scope
from headway.wire.health import NothingAsked

_LETTERS_WITHIN_S = 2.0
"""A store that is slow or away costs one number, not the whole page."""


@operation(Scope.READ)
async def metrics(desk: Desk, caller: Caller, asked: NothingAsked) -> MetricsPage:  # noqa: ARG001
    """Show what this server counts and is at, in the text form of Prometheus (O-3).

    Labels are closed sets; agents and sessions are not among them.
    """
    return MetricsPage(desk.metrics, await _snapshot(desk))


async def _snapshot(desk: Desk) -> Snapshot:
    try:
        stats = desk.hw.stats()
    except NotRunning:
        return Snapshot(False, desk.streams, desk.journal.left_out)
    ready = not stats.draining and desk.hw.store_away is None
    watch = desk.hw.engine.watch
    return Snapshot(
        ready,
        desk.streams,
        desk.journal.left_out,
        stats,
        await _letters(desk),
        tuple(watch.living),
        watch.snapshot,
    )


async def _letters(desk: Desk) -> tuple[int, int] | None:
    try:
        async with asyncio.timeout(_LETTERS_WITHIN_S):
            return await desk.hw.engine.store.count_letters()
    except (Unavailable, TimeoutError):
        return None
