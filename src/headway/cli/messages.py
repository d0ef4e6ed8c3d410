"""What `headway run`, `send` and `chat` have in common: whom to ask, in which session, and how."""

import getpass
import sys
from typing import Annotated

import typer

_STDIN = "-"
CHANNEL = "cli"
"""The place that a person at a shell writes from, as far as session keys go; nothing is delivered to it."""

AgentArgument = Annotated[str, typer.Argument(metavar="AGENT", help="Who is asked.")]
TextArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TEXT", help="What is said; - reads the standard input.", show_default=False
    ),
]
Wait = Annotated[
    bool, typer.Option("--wait/--no-wait", help="Wait for the end and show the reply.")
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Show only the reply, not what comes before it.")
]
Lane = Annotated[str | None, typer.Option(metavar="NAME", help="The lane it counts in.")]
Priority = Annotated[
    int | None, typer.Option(min=-100, max=100, help="Lower goes first; below 10 is interactive.")
]
Deadline = Annotated[
    str | None,
    typer.Option(metavar="WHEN", help="Ended if it is not done by then: 30s, or an instant."),
]
Key = Annotated[
    str | None,
    typer.Option("--key", metavar="TEXT", help="Asked twice with the same key, it is done once."),
]
Session = Annotated[
    str | None, typer.Option("--session", metavar="KEY", help="The session it belongs to.")
]


def text_of(words: list[str] | None, *, may_be_empty: bool = False) -> str:
    """The words as one text; from the standard input where that was said, or where there are none but a pipe."""
    from headway.model.errors import Refused

    text = " ".join(words or ())
    if words == [_STDIN] or (not words and not sys.stdin.isatty()):
        text = sys.stdin.read().removesuffix("\n")
    if not text.strip() and not may_be_empty:
        raise Refused("there is no text: say it behind the agent, or - for the standard input")
    return text


def own_session(agent: str) -> str:
    """The conversation of this user with an agent, from any shell of his."""
    from headway.core.session_key import session_key
    from headway.model.run import AgentName, Route

    return session_key(AgentName(agent), Route(CHANNEL, peer=user_name()))


def user_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"
