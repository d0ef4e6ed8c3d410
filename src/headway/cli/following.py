"""Follows a run to its end: what it emits goes to stderr while a person watches, its reply to stdout."""

import sys
from typing import TYPE_CHECKING

import typer

from headway.cli.answers import as_json as json_of
from headway.cli.asking import ask
from headway.cli.exits import INTERRUPTED, NO_REPLY
from headway.cli.printing import print_all

if TYPE_CHECKING:
    from headway.client import Client
    from headway.client.runs import News
    from headway.wire.runs import OutcomeAnswer, RunAnswer


def follow_to_end(
    server: str | None, token: str | None, run_id: str, *, as_json: bool, quiet: bool = False
) -> None:
    """Wait for a run, show it, and end with the exit code of its outcome."""
    show = Emitted() if sys.stderr.isatty() and not quiet else None
    try:
        ended = ask(server, token, lambda client: _followed(client, run_id, show))
    except KeyboardInterrupt:
        typer.echo(
            f"\nheadway: run {run_id} goes on: `headway runs watch {run_id}` to see it, "
            f"`headway runs cancel {run_id}` to end it",
            err=True,
        )
        raise typer.Exit(INTERRUPTED) from None
    if show is not None:
        show.end()
    run, outcome = ended
    if as_json:
        print_all(json_of(run))
    tell_outcome(run.run_id, outcome, silent=as_json)


def tell_outcome(run_id: str, outcome: "OutcomeAnswer", *, silent: bool = False) -> None:
    """The reply, or in one line why there is none; and the exit code of it."""
    from headway.cli.runs.telling import ending_words, json_text
    from headway.model.words import State

    if outcome.state is State.DONE:
        if not silent:
            if outcome.text or outcome.data is None or outcome.attachments:
                print_all(outcome.text)
            else:
                print_all(json_text(outcome.data))
            for attachment in outcome.attachments:
                print_all(
                    f"+ {attachment.name} ({attachment.media_type}) {attachment.url}".rstrip()
                )
        return
    detail = f": {outcome.error}" if outcome.error else ""
    typer.echo(f"headway: run {run_id} ended {ending_words(outcome)}{detail}", err=True)
    raise typer.Exit(NO_REPLY)


class Emitted:
    """What a run emits, shown dim on stderr; a new attempt begins anew."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True, highlight=False, soft_wrap=True)
        self._open = False
        self._attempt = 0

    def show(self, news: "News") -> None:
        from headway.wire.output import AttemptBegun, AttemptOver, OutputPiece

        match news:
            case OutputPiece():
                self._print(news.text)
            case AttemptBegun() if news.attempt > 1 and news.attempt != self._attempt:
                self.end()
                self._print(f"(attempt {news.attempt})\n")
            case AttemptOver():
                self.end()
                self._print(f"(it is tried again{f': {news.error}' if news.error else ''})\n")
            case _:
                pass
        if isinstance(news, AttemptBegun):
            self._attempt = news.attempt

    def end(self) -> None:
        """What comes next begins on a line of its own."""
        if self._open:
            self._console.print()
            self._open = False

    def _print(self, text: str) -> None:
        from rich.text import Text

        from headway.cli.harmless import harmless

        shown = harmless(text)
        if shown:
            self._console.print(Text(shown, style="dim"), end="")
            self._open = not shown.endswith("\n")


async def _followed(
    client: "Client", run_id: str, show: Emitted | None
) -> "tuple[RunAnswer, OutcomeAnswer]":
    from contextlib import aclosing

    from headway.wire.output import RunOver

    async with aclosing(client.runs.watch(run_id)) as watched:
        async for news in watched:
            if isinstance(news, RunOver):
                return await client.runs.get(run_id), news.outcome
            if show is not None:
                show.show(news)
    raise AssertionError("a run is watched to its end")
