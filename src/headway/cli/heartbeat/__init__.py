"""`headway heartbeat`: the periodic wake-ups of agents, handled by people. One file per command.

A heartbeat is a job of its agent, so much is shared with `headway jobs`: how a store is opened, how a log reads.
If this room is wrong, an agent sleeps that somebody relies on, or wakes people at night.
"""

import typer

from headway.cli.exits import EXIT_CODES
from headway.cli.heartbeat.checklist import checklist
from headway.cli.heartbeat.log import log
from headway.cli.heartbeat.pause import pause
from headway.cli.heartbeat.resume import resume
from headway.cli.heartbeat.rm import rm
from headway.cli.heartbeat.set import set_heartbeat
from headway.cli.heartbeat.status import status
from headway.cli.heartbeat.wake import wake

heartbeat = typer.Typer(
    name="heartbeat",
    help="Heartbeats: agents that wake from time to time, and speak only if it is worth it.",
    no_args_is_help=True,
    epilog=EXIT_CODES,
)
heartbeat.command("status", epilog=EXIT_CODES)(status)
heartbeat.command("wake", epilog=EXIT_CODES)(wake)
heartbeat.command("checklist", epilog=EXIT_CODES)(checklist)
heartbeat.command("log", epilog=EXIT_CODES)(log)
heartbeat.command("set", epilog=EXIT_CODES)(set_heartbeat)
heartbeat.command("pause", epilog=EXIT_CODES)(pause)
heartbeat.command("resume", epilog=EXIT_CODES)(resume)
heartbeat.command("rm", epilog=EXIT_CODES)(rm)
