"""`headway tasks`: what programs ask agents for (T), handled by people and scripts. One file per command.

A task is a run whose source is a program: `headway runs` shows it too. If this room is wrong, work is asked twice,
or a batch is believed to be taken that was not.
"""

import typer

from headway.cli.exits import EXIT_CODES, REPLY_EXIT_CODES
from headway.cli.tasks.batch import batch
from headway.cli.tasks.cancel import cancel
from headway.cli.tasks.list import list_tasks
from headway.cli.tasks.show import show_task
from headway.cli.tasks.stats import stats
from headway.cli.tasks.submit import submit

tasks = typer.Typer(
    name="tasks",
    help="Tasks: what programs ask agents for. Submit, see, cancel them.",
    no_args_is_help=True,
    epilog=EXIT_CODES,
)
tasks.command("submit", epilog=REPLY_EXIT_CODES)(submit)
tasks.command("batch", epilog=EXIT_CODES)(batch)
tasks.command("list", epilog=EXIT_CODES)(list_tasks)
tasks.command("show", epilog=EXIT_CODES)(show_task)
tasks.command("cancel", epilog=EXIT_CODES)(cancel)
tasks.command("stats", epilog=EXIT_CODES)(stats)
