"""The `headway` command: one file (or folder, if it is long) per subcommand.

The topmost room: it may import everything and nothing may import it. A command reads its options,
calls what does the work and turns the answer into text and an exit code; it decides nothing itself.
Exit codes are in `exits`; a command line that cannot be read ends with 2, like everything refused.
"""

from typing import Annotated

import typer

from headway.cli.database import db
from headway.cli.demo.command import demo
from headway.cli.exits import EXIT_CODES
from headway.cli.heartbeat import heartbeat
from headway.cli.jobs import jobs
from headway.cli.nodes import nodes
from headway.cli.worker.command import worker

app = typer.Typer(
    name="headway",
    help="The scheduler for AI agents: chats in order, runs on time, nothing lost.",
    epilog="New here? Run: headway demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(demo)
app.command(epilog=EXIT_CODES)(worker)
app.command(epilog=EXIT_CODES)(nodes)
app.add_typer(jobs)
app.add_typer(heartbeat)
app.add_typer(db)


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
