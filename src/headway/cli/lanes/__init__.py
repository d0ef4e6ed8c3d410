"""`headway lanes`: how many runs go at once, looked at and changed while a server runs.

Lanes are those of the node that is asked. What is set here holds until it ends or its config names another value:
what should last is in headway.toml. If this room is wrong, a lane is opened or shut that was not meant.
"""

import typer

from headway.cli.exits import EXIT_CODES
from headway.cli.lanes.changing import clear, pause, resume, set_lane
from headway.cli.lanes.showing import list_lanes

lanes = typer.Typer(
    name="lanes",
    help="Lanes: how many runs go at once. See, resize, pause and clear them, live.",
    no_args_is_help=True,
    epilog=EXIT_CODES,
)
lanes.command("list", epilog=EXIT_CODES)(list_lanes)
lanes.command("set", epilog=EXIT_CODES)(set_lane)
lanes.command("pause", epilog=EXIT_CODES)(pause)
lanes.command("resume", epilog=EXIT_CODES)(resume)
lanes.command("clear", epilog=EXIT_CODES)(clear)
