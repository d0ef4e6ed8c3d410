"""`headway outbox`: what is to be said on channels, and what was given up."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.exits import EXIT_CODES
from headway.cli.options import AsJson, Cursor, Limit, ServerUrl, TokenText, Watch

if TYPE_CHECKING:
    from headway.model.time import Instant
    from headway.wire.outbox import LetterAnswer, SoughtState

outbox = typer.Typer(
    name="outbox",
    help="The outbox: what waits to be delivered to channels, and what was given up.",
    no_args_is_help=True,
    epilog=EXIT_CODES,
)


@outbox.command("list", epilog=EXIT_CODES)
def list_letters(
    *,
    waiting: Annotated[
        bool, typer.Option("--waiting", help="Only what still waits to be tried.")
    ] = False,
    dead: Annotated[bool, typer.Option("--dead", help="Only what was given up.")] = False,
    channel: Annotated[str | None, typer.Option(help="Only for this channel.")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
    watch: Watch = False,
    server: ServerUrl = None,
    token: TokenText = None,
    as_json: AsJson = False,
) -> None:
    """List what waits to be delivered, and what was given up after a day of tries. The oldest first."""
    from headway.cli.answers import more
    from headway.cli.asking import look
    from headway.cli.opening import wall_now
    from headway.wire.outbox import LettersQuery

    state: SoughtState = "all" if waiting == dead else "dead" if dead else "waiting"
    query = LettersQuery(state=state, channel=channel, limit=limit, cursor=cursor)
    page = look(
        server,
        token,
        lambda client: client.outbox.list(query),
        lambda page: letters_table(page.letters, wall_now()),
        json=as_json,
        watch=watch,
    )
    if page is not None and not as_json:
        more(page.cursor)


@outbox.command("retry", epilog=EXIT_CODES)
def retry_letter(
    letter: Annotated[str, typer.Argument(metavar="LETTER", help="Its id.")],
    *,
    server: ServerUrl = None,
    token: TokenText = None,
    as_json: AsJson = False,
) -> None:
    """Deliver a dead letter after all, as if it were new."""
    from headway.cli.asking import look

    look(
        server,
        token,
        lambda client: client.outbox.retry(letter),
        lambda answer: f"{answer.id} is tried again",
        json=as_json,
    )


def letters_table(letters: "Sequence[LetterAnswer]", now: "Instant") -> str:
    from headway.cli.answers import LONGEST_CELL, one_line
    from headway.cli.tables import table
    from headway.cli.times import ago

    if not letters:
        return "nothing"
    head = ("letter", "state", "to", "run", "since", "tries", "next", "error", "text")
    rows = [
        (
            letter.id,
            letter.state,
            _to(letter),
            letter.run_id,
            ago(letter.first_at, now),
            str(letter.tries),
            _next(letter, now),
            one_line(letter.error, LONGEST_CELL),
            one_line(_said(letter), LONGEST_CELL),
        )
        for letter in letters
    ]
    return table(head, rows)


def _next(letter: "LetterAnswer", now: "Instant") -> str:
    """When it is tried again; what was given up waits for `outbox retry`."""
    from headway.cli.times import short
    from headway.cli.views import instant

    if letter.next_at is None:
        return "-"
    left = instant(letter.next_at) - now
    return f"in {short(left)}" if left > 0 else "now"


def _to(letter: "LetterAnswer") -> str:
    """Where it goes; of a callback, its address."""
    from headway.cli.answers import one_line
    from headway.cli.runs.telling import route_text
    from headway.core.callback_url import CALLBACK

    return (
        one_line(letter.route.to) if letter.route.channel == CALLBACK else route_text(letter.route)
    )


def _said(letter: "LetterAnswer") -> str:
    """What it says; of a callback, how the task ended instead of the JSON that says so."""
    import msgspec

    from headway.core.callback_url import CALLBACK

    if letter.route.channel != CALLBACK:
        return letter.text
    try:
        notice = msgspec.json.decode(letter.text, type=dict[str, object])
    except msgspec.DecodeError:
        return letter.text
    how = "/".join(str(part) for part in (notice.get("state"), notice.get("reason")) if part)
    what = notice.get("error") or notice.get("text") or ""
    return f"{how}: {what}" if what else how
