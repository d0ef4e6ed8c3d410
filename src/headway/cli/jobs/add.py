"""`headway jobs add`: a new job."""

from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.exits import errors_told
from headway.cli.jobs import options
from headway.cli.jobs.show import tell
from headway.cli.options import AsJson, ServerUrl, StoreInstead, TokenText, place_of

if TYPE_CHECKING:
    from headway.cli.jobs.boards import JobBoard
    from headway.cli.options import Place
    from headway.wire.jobs import JobAnswer


def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Unique among the agent's jobs.")],
    *,
    store: StoreInstead = None,
    server: ServerUrl = None,
    token: TokenText = None,
    agent: Annotated[
        str | None,
        typer.Option(help=f"Who is asked; with --command {options.COMMAND_AGENT!r} unless said."),
    ] = None,
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
    disabled: Annotated[bool, typer.Option("--disabled", help="Not yet: it is paused.")] = False,
    as_json: AsJson = False,
) -> None:
    """Add a job: one of --cron, --every, --at, and one of --text, --command, --function.

    It is shown with its next three firings. A node that runs its agent fires
    it; a command needs `headway worker --commands`.

    \b
    headway jobs add brief --agent support --text 'What is new?'
        --cron '0 9 * * 1-5' --tz Europe/Paris --deliver telegram:42
    headway jobs add tea --agent support --at 'in 20 minutes' --text 'Tea!'
    headway jobs add backup --every 6h --command 'backup --all' --timeout 2h
    """
    from headway.wiring import run

    with errors_told():
        fields: dict[str, object] = {
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
            "enabled": False if disabled else None,
        }
        said = {field: value for field, value in fields.items() if value is not None}
        asked = agent or (options.COMMAND_AGENT if command is not None else "")
        added = run(_add(place_of(server, token, store), name, asked, said))
    tell(added, as_json=as_json)


async def _add(place: "Place", name: str, agent: str, fields: dict[str, object]) -> "JobAnswer":
    from headway.cli.jobs.boards import jobs_changed

    async with jobs_changed(place) as jobs:
        added = await jobs.add(name, agent, fields)
        if await _is_lacking(jobs, agent):
            note = f"this server runs no agent {agent!r}: the job waits for a node that does"
            typer.echo(f"headway: note: {note}", err=True)
        return added


async def _is_lacking(jobs: "JobBoard", agent: str) -> bool:
    from headway.model.errors import HeadwayError

    try:
        return await jobs.lacks(agent)
    except HeadwayError:
        return False  # The job is there all the same.
