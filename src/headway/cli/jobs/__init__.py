"""`headway jobs`: durable rules that make runs over time, handled by people. One file per command.

A server is asked, or a store if one is named: `boards` makes both alike. Of a store, what only reads opens it as
it is and writes nothing; what changes something does it as a process that runs nothing, beside the nodes that do.
`options` says what can be said about a job, `finding` which job is meant, `telling` how a job reads. If this room
is wrong, a person pauses, removes or misreads a job that is not the one.
"""

import typer

from headway.cli.exits import EXIT_CODES, REPLY_EXIT_CODES
from headway.cli.jobs.add import add
from headway.cli.jobs.edit import edit
from headway.cli.jobs.export import export
from headway.cli.jobs.import_ import IMPORT_EXIT_CODES, import_jobs
from headway.cli.jobs.list import list_jobs
from headway.cli.jobs.log import log
from headway.cli.jobs.next import next_firings
from headway.cli.jobs.pause import pause
from headway.cli.jobs.resume import resume
from headway.cli.jobs.rm import rm
from headway.cli.jobs.run import run_job
from headway.cli.jobs.show import show

jobs = typer.Typer(
    name="jobs",
    help="Jobs: what agents are asked again and again, or once at a time of its own.",
    no_args_is_help=True,
    epilog=EXIT_CODES,
)
jobs.command("list", epilog=EXIT_CODES)(list_jobs)
jobs.command("add", epilog=EXIT_CODES)(add)
jobs.command("show", epilog=EXIT_CODES)(show)
jobs.command("edit", epilog=EXIT_CODES)(edit)
jobs.command("pause", epilog=EXIT_CODES)(pause)
jobs.command("resume", epilog=EXIT_CODES)(resume)
jobs.command("run", epilog=REPLY_EXIT_CODES)(run_job)
jobs.command("rm", epilog=EXIT_CODES)(rm)
jobs.command("log", epilog=EXIT_CODES)(log)
jobs.command("next", epilog=EXIT_CODES)(next_firings)
jobs.command("import", epilog=IMPORT_EXIT_CODES)(import_jobs)
jobs.command("export", epilog=EXIT_CODES)(export)
