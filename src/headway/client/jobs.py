"""Jobs on a server: the same methods as `hw.jobs`, with the answers of the wire."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Literal

import msgspec

from headway.client.line import Line
from headway.core.job_fields import read_command, read_gate, read_route
from headway.model.time import span, span_text
from headway.wire.errors import invalid
from headway.wire.firings import EntryPage, JobLogQuery, LogQuery, NextFirings, NextQuery
from headway.wire.job_requests import ImportRequest, JobEdit, JobRequest
from headway.wire.jobs import (
    ExportQuery,
    ImportAnswer,
    JobAnswer,
    JobExport,
    JobFired,
    JobPage,
    JobPath,
    JobRemoved,
    JobRun,
    JobsQuery,
    JobsStatus,
    JobsStatusQuery,
)
from headway.wire.places import RouteRequest
from headway.wire.schedules import CommandParts, GateRequest


class Jobs:
    """Durable rules that make runs over time. A job is named by its id, or as `agent/name`."""

    def __init__(self, line: Line) -> None:
        self._line = line

    async def add(self, name: str, agent: str, **fields: object) -> JobAnswer:
        """A new job: one of `cron`, `every`, `at`, and one of `text`, `command`, `function`."""
        asked = _request({"name": name, "agent_id": agent, **fields}, JobRequest)
        return await self._line.ask("POST", "/jobs", JobAnswer, asked)

    async def get(self, job: str) -> JobAnswer:
        return await self._line.ask("GET", "/jobs/{job}", JobAnswer, JobPath(job=job))

    async def list(
        self,
        *,
        agent: str | None = None,
        enabled: bool | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> JobPage:
        query = JobsQuery(agent_id=agent, enabled=enabled, limit=limit, cursor=cursor)
        return await self._line.ask("GET", "/jobs", JobPage, query)

    async def edit(self, job: str, **patch: object) -> JobAnswer:
        """Change what is named and nothing else; None sets an option back to its default."""
        said = {"agent_id" if name == "agent" else name: value for name, value in patch.items()}
        asked = _request({"job": job, **said}, JobEdit)
        return await self._line.ask("PATCH", "/jobs/{job}", JobAnswer, asked)

    async def pause(self, job: str) -> JobAnswer:
        return await self._line.ask("POST", "/jobs/{job}/pause", JobAnswer, JobPath(job=job))

    async def resume(self, job: str) -> JobAnswer:
        return await self._line.ask("POST", "/jobs/{job}/resume", JobAnswer, JobPath(job=job))

    async def run(self, job: str, *, only_if_due: bool = False) -> str | None:
        """Fire it now. The id of the run; None: it was to run only if due, and is not."""
        asked = JobRun(job=job, only_if_due=only_if_due)
        return (await self._line.ask("POST", "/jobs/{job}/run", JobFired, asked)).run_id

    async def remove(self, job: str) -> JobRemoved:
        return await self._line.ask("DELETE", "/jobs/{job}", JobRemoved, JobPath(job=job))

    async def log(
        self, job: str | None = None, *, limit: int = 100, cursor: str | None = None
    ) -> EntryPage:
        """What has become of its firings, or of all jobs', the newest first."""
        if job is None:
            every = LogQuery(limit=limit, cursor=cursor)
            return await self._line.ask("GET", "/jobs/runs", EntryPage, every)
        one = JobLogQuery(job=job, limit=limit, cursor=cursor)
        return await self._line.ask("GET", "/jobs/{job}/runs", EntryPage, one)

    async def next(self, job: str, count: int = 5, tz: str | None = None) -> NextFirings:
        query = NextQuery(job=job, count=count, tz=tz)
        return await self._line.ask("GET", "/jobs/{job}/next", NextFirings, query)

    async def status(self, agent: str | None = None) -> JobsStatus:
        """How they are, all together."""
        query = JobsStatusQuery(agent_id=agent)
        return await self._line.ask("GET", "/jobs/status", JobsStatus, query)

    async def export(self, agent: str | None = None, cursor: str | None = None) -> JobExport:
        query = ExportQuery(agent_id=agent, cursor=cursor)
        return await self._line.ask("GET", "/jobs/export", JobExport, query)

    async def load(
        self,
        text: str,
        *,
        agent: str | None = None,
        form: Literal["json", "crontab", "system-crontab"] = "json",
    ) -> ImportAnswer:
        """Take in a file of jobs: what an export gives, the jobs.json of OpenClaw, or a crontab."""
        asked = ImportRequest(text=text, form=form, agent_id=agent)
        return await self._line.ask("POST", "/jobs/import", ImportAnswer, asked)


def _request(
    fields: Mapping[str, object], kind: type[JobRequest] | type[JobEdit]
) -> JobRequest | JobEdit:
    """What was said as the library takes it, as the wire has it: short forms are written out."""
    said: dict[str, object] = {}
    for name, value in fields.items():
        said[name] = _FORMS[name](value) if name in _FORMS and value is not None else value
    names = {field.name: field.encode_name for field in msgspec.structs.fields(kind)}
    plain = {names.get(name, name): _plain(value) for name, value in said.items()}
    try:
        return msgspec.convert(plain, kind)
    except msgspec.ValidationError as wrong:
        raise invalid(wrong, kind, plain) from None


def _plain(value: object) -> object:
    if isinstance(value, timedelta):
        return span_text(span(value, "duration"))
    return msgspec.to_builtins(value)


def _command(value: object) -> object:
    command = read_command(value)
    return CommandParts(
        argv=command.argv,
        folder=command.folder,
        environment=dict(command.environment),
        stdin=command.stdin,
    )


def _gate(value: object) -> object:
    gate = read_gate(value)
    return GateRequest(function=gate.function) if gate.function else GateRequest(command=gate.argv)


def _route(value: object) -> object:
    route = read_route(value)
    return RouteRequest(
        channel=route.channel, to=route.peer, thread=route.thread, account=route.account
    )


_FORMS = {"command": _command, "gate": _gate, "deliver": _route}
