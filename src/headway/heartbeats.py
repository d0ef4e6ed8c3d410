"""`hw.heartbeats`: the periodic wake-ups of agents, watched and changed while Headway runs."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypedDict, Unpack

import msgspec

from headway.calls import in_thread
from headway.core.firing import job_view
from headway.core.heartbeat import read_hours
from headway.core.job_fields import read_route
from headway.core.request import Duration, agent_name, check_text, name_text, whole_number
from headway.model.errors import InvalidInput, UnknownOption
from headway.model.heartbeat import LAST, NONE, HeartbeatSettings
from headway.model.run import AgentName, Route
from headway.model.time import Instant, Span, span
from headway.model.views import JobView
from headway.ports import JobQuery, LogPage, LogQuery
from headway.runtime.engine import Engine
from headway.runtime.looks import read_checklist


class HeartbeatOptions(TypedDict, total=False):
    """All that can be said about an agent's heartbeat."""

    every: Duration
    prompt: str
    hours: str | tuple[str, str]
    tz: str
    target: Route | Mapping[str, str] | str
    checklist: str | Path
    ack_max_chars: int
    lane: str
    session: str
    timeout: Duration


class Heartbeats:
    """The heartbeats of a store, by agent."""

    def __init__(self, engine: Callable[[], Engine], zone: Callable[[], str]) -> None:
        self._engine = engine
        self._zone = zone

    async def list(self) -> tuple[JobView, ...]:
        """All heartbeats: each is a job, whose settings are `view.job.heartbeat`."""
        views: list[JobView] = []
        cursor: str | None = None
        while True:
            query = JobQuery(heartbeats=True, limit=1000, cursor=cursor)
            page = await self._engine().jobs.list(query)
            views += [job_view(record) for record in page.jobs]
            cursor = page.cursor
            if cursor is None:
                return tuple(views)

    async def get(self, agent: str) -> JobView:
        return job_view(await self._engine().jobs.heartbeat(_agent(agent)))

    async def set(self, agent: str, **options: Unpack[HeartbeatOptions]) -> JobView:
        """Give an agent a heartbeat, or another one; what is not said is at its default."""
        settings = read_heartbeat(options, self._zone())
        return job_view(await self._engine().jobs.declare_heartbeat(_agent(agent), settings))

    async def pause(self, agent: str) -> JobView:
        jobs = self._engine().jobs
        return job_view(await jobs.pause((await jobs.heartbeat(_agent(agent))).job.id))

    async def resume(self, agent: str) -> JobView:
        jobs = self._engine().jobs
        return job_view(await jobs.resume((await jobs.heartbeat(_agent(agent))).job.id))

    async def remove(self, agent: str) -> None:
        jobs = self._engine().jobs
        await jobs.remove((await jobs.heartbeat(_agent(agent))).job.id)

    async def wake(self, agent: str, *, manual: bool = True) -> Instant | None:
        """Wake an agent soon. What a program asks for (not `manual`) keeps the least distance between two wakes.

        None: the agent's own heartbeat asks, and cannot wake it again.
        """
        return await self._engine().jobs.wake(_agent(agent), manual=manual)

    async def log(self, agent: str, *, limit: int = 100, cursor: str | None = None) -> LogPage:
        """What has become of its wake-ups, the newest first: each skip with its one reason."""
        whole_number(1, 1000)(limit, "limit")
        jobs = self._engine().jobs
        record = await jobs.heartbeat(_agent(agent))
        return await jobs.log(LogQuery(record.job.id, limit, cursor))

    async def checklist(self, agent: str) -> str | None:
        """The checklist's text, from its file or from the store; None if there is none."""
        settings = await self._settings(agent)
        if settings is not None and settings.checklist:
            return await in_thread(read_checklist, Path(settings.checklist))
        return await self._engine().jobs.checklist(_agent(agent))

    async def set_checklist(self, agent: str, text: str) -> None:
        """Write the checklist, where it is kept."""
        _text(text, "text")
        settings = await self._settings(agent)
        if settings is not None and settings.checklist:
            await in_thread(_write, Path(settings.checklist), text)
        else:
            await self._engine().jobs.set_checklist(_agent(agent), text)

    async def _settings(self, agent: str) -> HeartbeatSettings | None:
        record = await self._engine().jobs.maybe_heartbeat(_agent(agent))
        return None if record is None else record.job.heartbeat


def read_heartbeat(options: Mapping[str, object], zone: str) -> HeartbeatSettings:
    """A heartbeat from what a program says, every option checked."""
    known = HeartbeatOptions.__annotations__
    for name in options:
        if name not in known:
            raise UnknownOption(name, known)
    said = {name: value for name, value in options.items() if value is not None}
    tz = said.pop("tz", None)
    if tz is not None and "hours" not in said:
        raise InvalidInput("tz", tz, "given together with `hours`, which it is for")
    if "hours" in said:
        said["hours"] = read_hours(said["hours"], tz or zone)
    if "every" in said:
        said["interval"] = said.pop("every")
    checked = {
        name: _CHECKS[name](value, name) if name in _CHECKS else value
        for name, value in said.items()
    }
    return msgspec.structs.replace(HeartbeatSettings(), **checked)


def _interval(value: object, _: str) -> Span:
    interval = span(value, "every")
    if not interval:
        raise InvalidInput("every", value, "a duration longer than 0")
    return interval


def _text(value: object, field: str) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise InvalidInput(field, value, "a text")
    try:
        check_text(value)
    except InvalidInput as wrong:
        raise InvalidInput(field, value, wrong.allowed) from None
    return value


def _name(value: object, field: str) -> str:
    return _text(name_text(value, field), field)


def _timeout(value: object, field: str) -> Span:
    timeout = span(value, field)
    if not timeout:
        raise InvalidInput(field, value, "a duration longer than 0")
    return timeout


def _target(value: object, field: str) -> Route | str:
    if isinstance(value, str):
        if value not in {LAST, NONE}:
            raise InvalidInput(field, value, "last, none, or a route")
        return value
    return read_route(value, field)


def _path(value: object, field: str) -> str:
    if not isinstance(value, str | Path) or not str(value):
        raise InvalidInput(field, value, "the path of a file")
    return str(Path(value).absolute())


_CHECKS: Mapping[str, Callable[[object, str], object]] = {
    "interval": _interval,
    "target": _target,
    "ack_max_chars": whole_number(0, 1_000_000),
    "prompt": _text,
    "checklist": _path,
    "lane": _name,
    "session": _name,
    "timeout": _timeout,
}


def _agent(name: str) -> AgentName:
    return agent_name(name)


def _write(path: Path, text: str) -> None:
    """Whole or not at all: the agent may read it this very moment."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.new")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(path)
