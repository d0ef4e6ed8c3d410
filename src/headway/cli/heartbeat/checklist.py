"""`headway heartbeat checklist`: what an agent looks after, read and written."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.exits import errors_told
from headway.cli.heartbeat.options import Agent
from headway.cli.options import AsJson, StoreUrl
from headway.cli.printing import print_all

if TYPE_CHECKING:
    from headway.model.job import JobRecord
    from headway.ports import Store

_STDIN = "-"


def checklist(
    agent: Agent,
    *,
    store: StoreUrl,
    from_file: Annotated[
        str | None,
        typer.Option("--set", metavar="FILE", help="Write it: what is in this file; - for stdin."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show an agent's checklist, or write it.

    It is kept where the heartbeat says: in a file beside the agent, or in the
    store. Headings, comments and empty bullets are nothing: if nothing else is
    on it, the agent is not woken.
    """
    from headway.cli.jobs.telling import as_json as json_of
    from headway.wiring import run

    with errors_told():
        text = None if from_file is None else _text(from_file)
        if text is not None:
            run(_write(store, agent, text))
        shown = run(_read(store, agent)) if text is None else text
    if as_json:
        print_all(json_of({"agentId": agent, "checklist": shown}))
    elif text is not None:
        print_all(f"the checklist of {agent} is written")
    elif shown is None:
        print_all(
            f"{agent} has no checklist; write one: headway heartbeat checklist {agent} --set FILE"
        )
    else:
        print_all(shown, end="" if shown.endswith("\n") else "\n")


async def read_checklist(store: "Store", record: "JobRecord | None", agent: str = "") -> str | None:
    """From its file, if the heartbeat names one and it can be read here; else from the store."""
    from headway.model.run import AgentName
    from headway.runtime.looks import checklist_name

    if record is not None and record.job.heartbeat is not None:
        agent = record.job.agent
        if path := record.job.heartbeat.checklist:
            return _file_text(Path(path))
    return await store.text(checklist_name(AgentName(agent)))


async def _read(url: str, agent: str) -> str | None:
    from headway.cli.opening import reading
    from headway.core.jobs import HEARTBEAT
    from headway.model.run import AgentName

    async with reading(url) as store:
        record = await store.find_job_named(AgentName(agent), HEARTBEAT)
        return await read_checklist(store, record, agent)


async def _write(url: str, agent: str, text: str) -> None:
    from headway.cli.opening import asking

    async with asking(url) as headway:
        await headway.heartbeats.set_checklist(agent, text)


def _text(file: str) -> str:
    from headway.model.errors import InvalidInput

    try:
        return sys.stdin.read() if file == _STDIN else Path(file).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeError) as wrong:
        raise InvalidInput("--set", file, f"a file that can be read ({wrong})") from None


def _file_text(path: Path) -> str | None:
    from headway.model.errors import InvalidInput

    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None
    except OSError as wrong:
        raise InvalidInput("checklist", str(path), f"a file that can be read ({wrong})") from None
