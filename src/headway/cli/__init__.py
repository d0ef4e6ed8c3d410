"""The `headway` command: one file (or folder, if it is long) per subcommand.

The topmost room: it may import everything and nothing may import it. A command reads its options,
calls what does the work and turns the answer into text and an exit code; it decides nothing itself.
Exit codes are in `exits`; a command line that cannot be read ends with 2, like everything refused.
"""

from typing import Annotated

import typer

from headway.cli.attach import attach
from headway.cli.bench.command import bench
from headway.cli.chat.command import chat
from headway.cli.config import config
from headway.cli.database import db
from headway.cli.demo.command import demo
from headway.cli.events import events
from headway.cli.exits import EXIT_CODES, REPLY_EXIT_CODES
from headway.cli.health import health, reload
from headway.cli.heartbeat import heartbeat
from headway.cli.jobs import jobs
from headway.cli.lanes import lanes
from headway.cli.logs import logs
from headway.cli.machine import machine
from headway.cli.nodes import nodes
from headway.cli.outbox import outbox
from headway.cli.run import run
from headway.cli.runs import runs
from headway.cli.send import send
from headway.cli.serve.command import serve
from headway.cli.sessions import sessions
from headway.cli.stop import stop
from headway.cli.tasks import tasks
from headway.cli.tokens import tokens
from headway.cli.top.command import top
from headway.cli.worker.command import worker
from headway.cli.workers import workers

app = typer.Typer(
    name="headway",
    help="The scheduler for AI agents: chats in order, runs on time, nothing lost.",
    epilog="New here? Run: headway demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_ASK = "Ask agents"
_SEE = "See and steer a server"
_RUN = "Run a server"

app.command(rich_help_panel=_ASK, epilog=REPLY_EXIT_CODES)(run)
app.command(rich_help_panel=_ASK, epilog=REPLY_EXIT_CODES)(send)
app.command(rich_help_panel=_ASK, epilog=REPLY_EXIT_CODES)(chat)
app.command(rich_help_panel=_ASK, epilog=EXIT_CODES)(stop)
app.add_typer(runs, rich_help_panel=_ASK)
app.add_typer(tasks, rich_help_panel=_ASK)
app.add_typer(jobs, rich_help_panel=_ASK)
app.add_typer(heartbeat, rich_help_panel=_ASK)
app.command(rich_help_panel=_SEE, epilog=EXIT_CODES)(top)
app.command(rich_help_panel=_SEE, epilog=EXIT_CODES)(events)
app.add_typer(lanes, rich_help_panel=_SEE)
app.add_typer(sessions, rich_help_panel=_SEE)
app.command(rich_help_panel=_SEE, epilog=EXIT_CODES)(nodes)
app.command(rich_help_panel=_SEE, epilog=EXIT_CODES)(workers)
app.command(rich_help_panel=_SEE, epilog=EXIT_CODES)(machine)
app.command(rich_help_panel=_SEE, epilog=EXIT_CODES)(attach)
app.add_typer(outbox, rich_help_panel=_SEE)
app.command(rich_help_panel=_SEE, epilog=EXIT_CODES)(health)
app.command(rich_help_panel=_SEE, epilog=EXIT_CODES)(reload)
app.command(rich_help_panel=_SEE, epilog=EXIT_CODES)(bench)
app.command(rich_help_panel=_RUN)(demo)
app.command(rich_help_panel=_RUN, epilog=EXIT_CODES)(serve)
app.command(rich_help_panel=_RUN, epilog=EXIT_CODES)(worker)
app.add_typer(tokens, rich_help_panel=_RUN)
app.add_typer(config, rich_help_panel=_RUN)
app.command(rich_help_panel=_RUN, epilog=EXIT_CODES)(logs)
app.add_typer(db, rich_help_panel=_RUN)


def _show_version(wanted: bool) -> None:
    if not wanted:
        return
    from importlib.metadata import PackageNotFoundError, version

    try:
        print(f"headway {version('headway')}")
    except PackageNotFoundError:
        print("headway, run from its source without being installed")
    raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    del version  # Answered by its callback, before any command.


def main() -> None:
    """What the installed `headway` runs."""
    app(prog_name="headway")
