"""How a command gets at a store: to read it as it is, or to ask for something as a process that runs nothing."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headway.facade import Headway
    from headway.model.time import Instant
    from headway.ports import Store


@asynccontextmanager
async def reading(url: str) -> "AsyncIterator[Store]":
    """The store, open, while no node begins and nothing is written: reading never writes (D-8)."""
    from headway.model.errors import StoreRefused
    from headway.wiring import open_store

    _check_shared(url)
    store = open_store(url)
    status = await store.status()
    if status.pending:
        # Opening would migrate.
        raise StoreRefused(
            status.store, "it is not up to date", "run `headway db migrate` or start a node first"
        )
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def asking(url: str, zone: str | None = None) -> "AsyncIterator[Headway]":
    """A process that adds and changes, beside the nodes that do the work; `zone` is that of who names none."""
    import os

    import msgspec

    from headway.config import settings_from
    from headway.facade import Headway

    _check_shared(url)
    settings = msgspec.structs.replace(settings_from(os.environ), tz=zone_or_default(zone))
    async with Headway(url, settings=settings) as headway:
        yield headway


def zone_or_default(zone: str | None) -> str:
    """The time zone that `--tz` names, or that of who names none."""
    import os

    from headway.config import settings_from
    from headway.core.schedule import zone_name

    if zone is not None:
        return zone_name(zone, "--tz")
    return zone_name(settings_from(os.environ).tz, "HEADWAY_TZ")


def wall_now() -> "Instant":
    """The time of day, for showing how far away something is."""
    from headway.runtime.clock import SystemClock

    return SystemClock().wall()


def _check_shared(url: str) -> None:
    from headway.model.errors import InvalidInput
    from headway.wiring import MEMORY

    if url == MEMORY:
        raise InvalidInput("--store", url, "a store that is kept: sqlite:///… or postgresql://…")
