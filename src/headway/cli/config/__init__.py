"""`headway config`: what is set, where, and what is wrong with it. One file per command.

Both commands read the file and the environment as `headway serve` would, and start nothing. If this room is wrong,
a person trusts a setting that the server does not have.
"""

import typer

from headway.cli.config.check import check
from headway.cli.config.show import show
from headway.cli.exits import EXIT_CODES

config = typer.Typer(
    name="config",
    help="The settings of a server: check the file, show what holds and where it comes from.",
    no_args_is_help=True,
    epilog=EXIT_CODES,
)
config.command("check", epilog=EXIT_CODES)(check)
config.command("show", epilog=EXIT_CODES)(show)
