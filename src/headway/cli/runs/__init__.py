"""`headway runs`: what was asked of agents, looked at while it waits, runs and has ended. One file per command.

A run is named by its id. `headway run` and `headway send` make runs; nothing here does. If this room is wrong, a
person cancels a run that is not the one, or believes that nothing holds one that waits.
"""

import typer

from headway.cli.exits import EXIT_CODES, REPLY_EXIT_CODES
from headway.cli.runs.cancel import cancel
from headway.cli.runs.list import list_runs
from headway.cli.runs.resume import resume
from headway.cli.runs.show import show_run
from headway.cli.runs.tree import tree
from headway.cli.runs.watch import watch
from headway.cli.runs.why import why

runs = typer.Typer(
    name="runs",
    help="Runs: work that agents were asked for. See it, watch it, ask why it waits, cancel it.",
    no_args_is_help=True,
    epilog=EXIT_CODES,
)
runs.command("list", epilog=EXIT_CODES)(list_runs)
runs.command("show", epilog=EXIT_CODES)(show_run)
runs.command("why", epilog=EXIT_CODES)(why)
runs.command("watch", epilog=REPLY_EXIT_CODES)(watch)
runs.command("tree", epilog=EXIT_CODES)(tree)
runs.command("cancel", epilog=EXIT_CODES)(cancel)
runs.command("resume", epilog=EXIT_CODES)(resume)
