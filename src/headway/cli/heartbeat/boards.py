"""Where heartbeats are: on a server or in a store. Both answer alike, so a command need not know which it asks."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from headway.cli.options import Place

if TYPE_CHECKING:
    from headway.client import Client
    from headway.facade import Headway
    from headway.heartbeats import HeartbeatOptions
    from headway.model.job import JobRecord
    from headway.ports import Store
    from headway.wire.firings import EntryPage
    from headway.wire.heartbeats import HeartbeatAnswer, HeartbeatPage, WakeAnswer

_AT_ONCE = 1000


class HeartbeatReader(Protocol):
    """What shows heartbeats and what became of them."""

    async def get(self, agent: str) -> "HeartbeatAnswer": ...

    async def list(self, *, limit: int = 100, cursor: str | None = None) -> "HeartbeatPage": ...

    async def log(
        self, agent: str, *, limit: int = 100, cursor: str | None = None
    ) -> "EntryPage": ...

    async def checklist(self, agent: str) -> str | None: ...


class HeartbeatBoard(HeartbeatReader, Protocol):
    """What also changes them."""

    async def set(self, agent: str, options: Mapping[str, object]) -> "HeartbeatAnswer": ...

    async def pause(self, agent: str) -> "HeartbeatAnswer": ...

    async def resume(self, agent: str) -> "HeartbeatAnswer": ...

    async def remove(self, agent: str) -> None: ...

    async def wake(self, agent: str) -> "WakeAnswer": ...

    async def set_checklist(self, agent: str, text: str) -> None: ...


@asynccontextmanager
async def heartbeats_shown(place: Place) -> AsyncIterator[HeartbeatReader]:
    """The heartbeats of a place, to be looked at: a store is opened as it is."""
    from headway.cli.opening import calling_or_told, reading

    if place.store is None:
        async with calling_or_told(place) as client:
            yield RemoteHeartbeats(client)
    else:
        async with reading(place.store) as store:
            yield StoredHeartbeats(store)


@asynccontextmanager
async def heartbeats_changed(place: Place) -> AsyncIterator[HeartbeatBoard]:
    from headway.cli.opening import asking, calling_or_told

    if place.store is None:
        async with calling_or_told(place) as client:
            yield RemoteHeartbeats(client)
    else:
        async with asking(place.store) as headway:
            yield OwnHeartbeats(headway)


async def every_heartbeat(heartbeats: HeartbeatReader) -> "list[HeartbeatAnswer]":
    found: list[HeartbeatAnswer] = []
    cursor: str | None = None
    while True:
        page = await heartbeats.list(limit=_AT_ONCE, cursor=cursor)
        found += page.heartbeats
        cursor = page.cursor
        if cursor is None:
            return found


class StoredHeartbeats:
    """The heartbeats of a store that is only read."""

    def __init__(self, store: "Store") -> None:
        self._store = store

    async def get(self, agent: str) -> "HeartbeatAnswer":
        from headway.core.firing import job_view
        from headway.wire.heartbeats import heartbeat_answer

        return heartbeat_answer(job_view(await self._find(agent)))

    async def list(self, *, limit: int = 100, cursor: str | None = None) -> "HeartbeatPage":
        from headway.core.firing import job_view
        from headway.ports import JobQuery
        from headway.wire.heartbeats import HeartbeatPage, heartbeat_answer

        query = JobQuery(heartbeats=True, limit=limit, cursor=cursor)
        page = await self._store.list_jobs(query)
        found = tuple(heartbeat_answer(job_view(record)) for record in page.jobs)
        return HeartbeatPage(heartbeats=found, cursor=page.cursor)

    async def log(self, agent: str, *, limit: int = 100, cursor: str | None = None) -> "EntryPage":
        from headway.ports import LogQuery
        from headway.wire.firings import entry_page

        job = (await self._find(agent)).job
        page = await self._store.job_log(LogQuery(job.id, limit, cursor))
        return entry_page(page.entries, page.cursor)

    async def checklist(self, agent: str) -> str | None:
        """From its file, if the heartbeat names one and it can be read here; else from the store."""
        from headway.core.jobs import HEARTBEAT
        from headway.model.run import AgentName
        from headway.runtime.looks import checklist_name

        record = await self._store.find_job_named(AgentName(agent), HEARTBEAT)
        settings = None if record is None else record.job.heartbeat
        if settings is not None and settings.checklist:
            return _file_text(Path(settings.checklist))
        return await self._store.text(checklist_name(AgentName(agent)))

    async def _find(self, agent: str) -> "JobRecord":
        from headway.core.jobs import HEARTBEAT
        from headway.model.errors import UnknownName
        from headway.model.run import AgentName

        record = await self._store.find_job_named(AgentName(agent), HEARTBEAT)
        if record is None or record.job.heartbeat is None:
            known = await every_heartbeat(self)
            raise UnknownName("AGENT", agent, [found.agent_id for found in known])
        return record


class OwnHeartbeats(StoredHeartbeats):
    """The heartbeats of a store that a `Headway` of this process changes; it runs nothing."""

    def __init__(self, headway: "Headway") -> None:
        super().__init__(headway.engine.store)
        self._heartbeats = headway.heartbeats

    async def set(self, agent: str, options: Mapping[str, object]) -> "HeartbeatAnswer":
        from headway.wire.heartbeats import heartbeat_answer

        said = cast("HeartbeatOptions", dict(options))
        return heartbeat_answer(await self._heartbeats.set(agent, **said))

    async def pause(self, agent: str) -> "HeartbeatAnswer":
        from headway.wire.heartbeats import heartbeat_answer

        return heartbeat_answer(await self._heartbeats.pause(agent))

    async def resume(self, agent: str) -> "HeartbeatAnswer":
        from headway.wire.heartbeats import heartbeat_answer

        return heartbeat_answer(await self._heartbeats.resume(agent))

    async def remove(self, agent: str) -> None:
        await self._heartbeats.remove(agent)

    async def wake(self, agent: str) -> "WakeAnswer":
        from headway.wire.heartbeats import wake_answer

        return wake_answer(agent, await self._heartbeats.wake(agent))

    async def set_checklist(self, agent: str, text: str) -> None:
        await self._heartbeats.set_checklist(agent, text)


class RemoteHeartbeats:
    """The heartbeats of a server."""

    def __init__(self, client: "Client") -> None:
        self._heartbeats = client.heartbeats

    async def get(self, agent: str) -> "HeartbeatAnswer":
        return await self._heartbeats.get(agent)

    async def list(self, *, limit: int = 100, cursor: str | None = None) -> "HeartbeatPage":
        return await self._heartbeats.list(limit=limit, cursor=cursor)

    async def log(self, agent: str, *, limit: int = 100, cursor: str | None = None) -> "EntryPage":
        return await self._heartbeats.log(agent, limit=limit, cursor=cursor)

    async def checklist(self, agent: str) -> str | None:
        return (await self._heartbeats.checklist(agent)).checklist

    async def set(self, agent: str, options: Mapping[str, object]) -> "HeartbeatAnswer":
        return await self._heartbeats.set(agent, **options)

    async def pause(self, agent: str) -> "HeartbeatAnswer":
        return await self._heartbeats.pause(agent)

    async def resume(self, agent: str) -> "HeartbeatAnswer":
        return await self._heartbeats.resume(agent)

    async def remove(self, agent: str) -> None:
        await self._heartbeats.remove(agent)

    async def wake(self, agent: str) -> "WakeAnswer":
        return await self._heartbeats.wake(agent)

    async def set_checklist(self, agent: str, text: str) -> None:
        await self._heartbeats.set_checklist(agent, text)


def _file_text(path: Path) -> str | None:
    from headway.model.errors import InvalidInput

    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None
    except OSError as wrong:
        raise InvalidInput("checklist", str(path), f"a file that can be read ({wrong})") from None
