"""`headway sessions`: what orders runs, looked at and configured by people.

A session is named by its key. To end what it does: `headway stop`. If this room is wrong, somebody's conversation
gets options that were meant for another.
"""

import typer

from headway.cli.exits import EXIT_CODES
from headway.cli.sessions.changing import clear, reset, set_queue
from headway.cli.sessions.showing import list_sessions, show_session

sessions = typer.Typer(
    name="sessions",
    help="Sessions: conversations and their queues. See them, set how they queue, clear them.",
    no_args_is_help=True,
    epilog=EXIT_CODES,
)
sessions.command("list", epilog=EXIT_CODES)(list_sessions)
sessions.command("show", epilog=EXIT_CODES)(show_session)
sessions.command("set", epilog=EXIT_CODES)(set_queue)
sessions.command("reset", epilog=EXIT_CODES)(reset)
sessions.command("clear", epilog=EXIT_CODES)(clear)
