"""`headway tasks batch`: many tasks at once, from a file."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.options import AsJson, ServerUrl, TokenText
from headway.cli.tasks.options import Callback

if TYPE_CHECKING:
    from headway.wire.tasks import BatchRequest

_STDIN = "-"


def batch(
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="Who is asked.")],
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="JSON: a list of tasks, or one on each line; - for stdin."
        ),
    ],
    *,
    atomic: Annotated[bool, typer.Option("--atomic", help="Take all of them or none.")] = False,
    callback: Callback = None,
    server: ServerUrl = None,
    token: TokenText = None,
    as_json: AsJson = False,
) -> None:
    """Submit up to 50 tasks at once. Each is taken or refused by itself.

    A task is an object with `action`, and what else `headway tasks submit`
    takes: tabId, selector, ref, params, priority, deadline, lane, session,
    idempotencyKey, callbackUrl. Ends with 2 if one was refused.
    """
    from headway.cli.answers import show
    from headway.cli.asking import ask
    from headway.cli.exits import REFUSED, errors_told
    from headway.cli.tasks.telling import batch_lines

    with errors_told():
        request = read_batch(agent, _text(file), atomic=atomic, callback=callback)
    answer = ask(server, token, lambda client: client.tasks.batch(request))
    show(answer, batch_lines, json=as_json)
    if answer.submitted < len(answer.items):
        raise typer.Exit(REFUSED)


def read_batch(
    agent: str, text: str, *, atomic: bool, callback: str | None = None
) -> "BatchRequest":
    """The request, from a list or from lines. What is wrong is named as in the file: `tasks[3].action`."""
    import msgspec

    from headway.model.errors import InvalidInput
    from headway.wire.errors import invalid
    from headway.wire.tasks import BatchRequest

    try:
        is_list = text.lstrip()[:1] == "["
        tasks = msgspec.json.decode(text) if is_list else msgspec.json.Decoder().decode_lines(text)
    except msgspec.DecodeError as wrong:
        raise InvalidInput(
            "FILE", text[:40], f"JSON: a list, or an object on each line ({wrong})"
        ) from None
    asked = {"agentId": agent, "tasks": tasks, "atomic": atomic, "callbackUrl": callback}
    try:
        return msgspec.convert(asked, BatchRequest)
    except msgspec.ValidationError as wrong:
        raise invalid(wrong, BatchRequest, asked) from None


def _text(file: str) -> str:
    from headway.model.errors import InvalidInput

    try:
        return sys.stdin.read() if file == _STDIN else Path(file).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeError) as wrong:
        raise InvalidInput("FILE", file, f"a file that can be read ({wrong})") from None
