"""Follows a run to its end: what it emits goes to stderr while a person watches, its reply to stdout."""

import sys
from typing import TYPE_CHECKING

import typer

from headway.cli.answers import as_json as json_of
from headway.cli.asking import ask
from headway.cli.emitted import Emitted
from headway.cli.exits import INTERRUPTED, NO_REPLY
from headway.cli.printing import print_all

if TYPE_CHECKING:
    from headway.client import Client
    from headway.wire.output import RunOver
    from headway.wire.runs import OutcomeAnswer, RunAnswer


def follow_to_end(
    server: str | None,
    token: str | None,
    run_id: str,
    *,
    as_json: bool,
    quiet: bool = False,
    taken: bool = False,
) -> None:
    """Wait for a run, show it, and end with the exit code of its outcome.

    For one that the server has just `taken`, "try again" is never the answer: who did would have it done twice. So
    it is waited for until the server is back, however long that takes.
    """
    show = Emitted() if sys.stderr.isatty() and not quiet else None
    if show is not None and taken:
        show.note(f"(run {run_id})")
    try:
        ended, run = ask(
            server,
            token,
            lambda client: _over_and_stored(client, run_id, show, taken=taken, stored=as_json),
        )
    except KeyboardInterrupt:
        typer.echo(
            f"\nheadway: run {run_id} goes on: `headway runs watch {run_id}` to see it, "
            f"`headway runs cancel {run_id}` to end it",
            err=True,
        )
        raise typer.Exit(INTERRUPTED) from None
    if show is not None:
        show.end()
    if run is not None:
        print_all(json_of(run))
    _tell_outcome(ended.run_id, ended.outcome, show, silent=as_json)


async def over(
    client: "Client", run_id: str, show: Emitted | None = None, *, taken: bool = False
) -> "RunOver":
    """How a run ended, once it has. If the server goes away and comes back meanwhile, that is said."""
    from contextlib import aclosing

    from headway.client.runs import ServerAway, ServerBack
    from headway.wire.output import RunOver

    async with aclosing(client.runs.watch(run_id, taken=taken)) as watched:
        async for news in watched:
            match news:
                case RunOver():
                    return news
                case ServerAway():
                    _say(
                        f"the server is away; waiting for run {run_id} "
                        f"(Ctrl-C leaves it; headway runs watch {run_id})",
                        show,
                    )
                case ServerBack():
                    _say("the server is back", show)
                case _ if show is not None:
                    show.show(news)
                case _:
                    pass
    raise AssertionError("a run is watched to its end")


async def _over_and_stored(
    client: "Client", run_id: str, show: Emitted | None, *, taken: bool, stored: bool
) -> "tuple[RunOver, RunAnswer | None]":
    from headway.model.errors import Unavailable

    while True:
        ended = await over(client, run_id, show, taken=taken)
        try:
            return ended, await client.runs.get(run_id) if stored else None
        except Unavailable:
            taken = True  # It went away just now: watching waits until it is back.


def _say(text: str, show: Emitted | None) -> None:
    if show is not None:
        show.end()
    typer.echo(f"headway: {text}", err=True)


def _tell_outcome(
    run_id: str, outcome: "OutcomeAnswer", show: Emitted | None, *, silent: bool
) -> None:
    """The reply, or in one line why there is none; and the exit code of it. What was seen is not told again."""
    from headway.cli.runs.telling import ending_words
    from headway.model.words import State

    if outcome.state is State.DONE:
        if not silent:
            seen = show is not None and sys.stdout.isatty() and show.ends_with(outcome.text)
            _print_reply(outcome, seen=seen)
        return
    error = outcome.error if show is None else show.unseen(outcome.error)
    detail = f": {error}" if error else ""
    typer.echo(f"headway: run {run_id} ended {ending_words(outcome)}{detail}", err=True)
    raise typer.Exit(NO_REPLY)


def _print_reply(outcome: "OutcomeAnswer", *, seen: bool) -> None:
    from headway.cli.runs.telling import json_text

    if not seen:
        if outcome.text or outcome.data is None or outcome.attachments:
            print_all(outcome.text)
        else:
            print_all(json_text(outcome.data))
    for attachment in outcome.attachments:
        print_all(f"+ {attachment.name} ({attachment.media_type}) {attachment.url}".rstrip())
