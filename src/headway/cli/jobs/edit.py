"""`headway jobs edit`: change what is named, and nothing else."""

from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.exits import errors_told
from headway.cli.jobs import options
from headway.cli.jobs.show import tell
from headway.cli.options import AsJson, ServerUrl, StoreInstead, TokenText, place_of

if TYPE_CHECKING:
    from headway.cli.options import Place
    from headway.wire.jobs import JobAnswer


def edit(
    job: options.JobName,
    *,
    store: StoreInstead = None,
    server: ServerUrl = None,
    token: TokenText = None,
    name: Annotated[str | None, typer.Option(help="Call it so.")] = None,
    agent: Annotated[str | None, typer.Option(help="Ask this agent.")] = None,
    cron: options.CronOption = None,
    every: options.EveryOption = None,
    at: options.AtOption = None,
    tz: options.ZoneOption = None,
    stagger: options.StaggerOption = None,
    misfire: options.MisfireOption = None,
    misfire_window: options.MisfireWindowOption = None,
    text: options.TextOption = None,
    command: options.CommandOption = None,
    function: options.FunctionOption = None,
    deliver: options.DeliverOption = None,
    gate_command: options.GateCommandOption = None,
    gate_function: options.GateFunctionOption = None,
    session: options.SessionOption = None,
    lane: options.LaneOption = None,
    priority: options.PriorityOption = None,
    timeout: options.TimeoutOption = None,
    retries: options.RetriesOption = None,
    max_attempts: options.MaxAttemptsOption = None,
    overlap: options.OverlapOption = None,
    delete_after_run: options.DeleteOption = None,
    reset: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OPTION", help="Set it back, as if it had never been said: --reset deliver."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Change what is named and nothing else; its time zone stays unless --tz names another.

    A job that a program declares in its code is renewed from there at the
    program's next start.

    \b
    headway jobs edit support/brief --cron '0 8 * * 1-5'
    headway jobs edit support/brief --timeout 5m --reset deliver
    """
    from headway.wiring import run

    with errors_told():
        fields: dict[str, object] = {
            "name": name,
            "agent": agent,
            "cron": cron,
            "every": every,
            "at": at,
            "tz": tz,
            "stagger": stagger,
            "misfire": misfire,
            "misfire_window": misfire_window,
            "text": text,
            "command": options.command_of(command, "--command"),
            "function": function,
            "deliver": options.route_of(deliver),
            "gate": options.gate_of(gate_command, gate_function),
            "session": session,
            "lane": lane,
            "priority": priority,
            "timeout": timeout,
            "retries": retries,
            "max_attempts": max_attempts,
            "overlap": overlap,
            "delete_after_run": delete_after_run,
        }
        place = place_of(server, token, store)
        changed = run(_edit(place, job, _patch(fields, reset or [])))
    tell(changed, as_json=as_json)


def _patch(fields: dict[str, object], reset: list[str]) -> dict[str, object]:
    """What was said, and what is to be as if it had never been."""
    from headway.core.jobs import OPTIONS
    from headway.model.errors import InvalidInput, UnknownName

    patch = {field: value for field, value in fields.items() if value is not None}
    names = {*OPTIONS, "delete_after_run"} - {"enabled"}
    for written in reset:
        option = written.removeprefix("--").replace("-", "_")
        if option not in names:
            raise UnknownName("--reset", written, {name.replace("_", "-") for name in names})
        if option in patch:
            raise InvalidInput("--reset", written, "another option than one that is given a value")
        patch[option] = None
    if not patch:
        raise InvalidInput("options", "none", "at least one: --help lists what can be changed")
    return patch


async def _edit(place: "Place", named: str, patch: dict[str, object]) -> "JobAnswer":
    from headway.cli.jobs.boards import jobs_changed
    from headway.cli.jobs.finding import find

    async with jobs_changed(place) as jobs:
        return await jobs.edit((await find(jobs, named)).id, patch)
