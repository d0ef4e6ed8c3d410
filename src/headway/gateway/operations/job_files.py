"""Jobs out and in again, as files have them (C-12)."""

import msgspec

from headway.gateway.access.caller import Caller
from headway.gateway.desk import Desk
from headway.gateway.operations import operation
from headway.gateway.operations.jobs import without_secrets
from headway.jobs import Jobs, Loaded
from headway.model.errors import InvalidInput
from headway.model.job import Job
from headway.model.words import Scope
from headway.wire.job_requests import ImportRequest
from headway.wire.jobs import (
    ExportQuery,
    ImportAnswer,
    JobExport,
    JobForm,
    job_answer,
    job_form,
)
from headway.wire.schedules import CommandShown

_COMMANDS = "command"
"""The agent that runs commands, unless another is named."""


@operation(Scope.READ)
async def export_jobs(desk: Desk, caller: Caller, asked: ExportQuery) -> JobExport:
    """Show jobs in the form that can be imported again. Heartbeats are settings of their agents, and left out.

    Without the scope `admin` the values of a command's variables and what it reads are hidden.
    """
    page = await desk.hw.jobs.list(
        agent=caller.only(asked.agent_id), limit=asked.limit, cursor=asked.cursor
    )
    return JobExport(jobs=tuple(_form(caller, view.job) for view in page.jobs), cursor=page.cursor)


@operation(Scope.ADMIN)
async def import_jobs(desk: Desk, caller: Caller, asked: ImportRequest) -> ImportAnswer:
    """Take in a file of jobs: what an export gives, the jobs.json of OpenClaw, or a crontab.

    A job whose id or name is taken replaces the one that has it, so a file can be imported again. What cannot be
    taken over is reported. It may hold commands and replace any job, so it needs the scope `admin`.
    """
    caller.need_all_agents()
    loaded = await _loaded(desk.hw.jobs, asked)
    return ImportAnswer(
        added=tuple(map(job_answer, loaded.added)),
        changed=tuple(map(job_answer, loaded.changed)),
        problems=tuple(loaded.problems),
    )


def _form(caller: Caller, job: Job) -> JobForm:
    form = job_form(job)
    if caller.may(Scope.ADMIN) or not isinstance(form.payload, CommandShown):
        return form
    return msgspec.structs.replace(form, payload=without_secrets(form.payload))


async def _loaded(jobs: Jobs, asked: ImportRequest) -> Loaded:
    if asked.form != "json":
        agent = asked.agent_id or _COMMANDS
        return await jobs.load_crontab(
            asked.text, agent, user_column=asked.form == "system-crontab"
        )
    try:
        return await jobs.load(asked.text, agent=asked.agent_id)
    except InvalidInput as wrong:
        # It is no file of jobs at all: that is a problem like any other.
        return Loaded(problems=[f"text: {wrong.allowed}"])
