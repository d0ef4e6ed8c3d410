"""How a command gets at what it asks: a server, or a store.

A store is read as it is, or asked for something as a process that runs nothing.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headway.cli.options import Place
    from headway.client import Client
    from headway.facade import Headway
    from headway.model.time import Instant
    from headway.ports import Store


@asynccontextmanager
async def calling(place: "Place") -> "AsyncIterator[Client]":
    """A client of the server. Whether there is one shows with the first question."""
    check_client()
    from headway.client import Client

    async with Client(place.server, place.token) as client:
        yield client


@asynccontextmanager
async def calling_or_told(place: "Place") -> "AsyncIterator[Client]":
    """A client of the server, for what a store could be asked too: if no server answers, that is said."""
    from headway.model.errors import Unavailable

    async with calling(place) as client:
        from headway.client.errors import NoServer

        try:
            yield client
        except NoServer as away:
            raise Unavailable(f"{away}, or a store with --store or HEADWAY_STORE") from None


def check_client() -> None:
    """The library needs none of what a client does; say what is missing in one line."""
    from importlib.util import find_spec

    from headway.model.errors import Refused

    missing = [name for name in ("httpx", "websockets") if find_spec(name) is None]
    if missing:
        raise Refused(f"{', '.join(missing)} not installed: pip install 'headway[server]'")


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


def servers_store(named: str | None, *, writes: bool = True) -> str:
    """The store that a server would use: the one that is named or configured, else that in the data folder."""
    import os

    from headway.cli.config.reading import read_config
    from headway.cli.serve.places import default_store, make_data_folder

    url = named or os.environ.get("HEADWAY_STORE") or read_config(None).store
    if url:
        return url
    if writes:
        make_data_folder()
    return default_store()


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
