"""`headway sessions set`, `reset` and `clear`."""

from typing import Annotated

import typer

from headway.cli.options import AsJson, ServerUrl, TokenText
from headway.cli.sessions.showing import SessionKey
from headway.model.words import Drop, Mode, SteerFallback


def set_queue(
    session: SessionKey,
    *,
    mode: Annotated[
        Mode | None, typer.Option(help="What a message does while the session is busy.")
    ] = None,
    debounce: Annotated[
        str | None, typer.Option(metavar="DURATION", help="How long to wait for more text.")
    ] = None,
    cap: Annotated[int | None, typer.Option(min=1, help="How many messages may wait.")] = None,
    drop: Annotated[Drop | None, typer.Option(help="Who gives way when more do.")] = None,
    steer_fallback: Annotated[
        SteerFallback | None, typer.Option(help="If the turn cannot be steered.")
    ] = None,
    max_concurrent: Annotated[
        int | None, typer.Option(min=1, help="How many of its runs go at once.")
    ] = None,
    server: ServerUrl = None,
    token: TokenText = None,
    as_json: AsJson = False,
) -> None:
    """Give a session queue options of its own, as /queue does. What is not said stays.

    \b
    headway sessions set agent:support:telegram:dm:42 --mode collect --debounce 2s
    """
    import msgspec

    from headway.cli.asking import look
    from headway.cli.exits import errors_told
    from headway.cli.sessions.telling import session_lines
    from headway.model.errors import InvalidInput
    from headway.wire.sessions import QueueRequest

    said = {
        "mode": mode,
        "debounce": debounce,
        "cap": cap,
        "drop": drop,
        "steer_fallback": steer_fallback,
        "max_concurrent": max_concurrent,
    }
    with errors_told():
        if all(value is None for value in said.values()):
            raise InvalidInput("options", "none", "at least one: --help lists what can be set")
    asked = QueueRequest(
        key=session,
        **{name: msgspec.UNSET if value is None else value for name, value in said.items()},  # type: ignore[arg-type]
    )
    look(
        server,
        token,
        lambda client: client.sessions.set_queue(asked),
        session_lines,
        json=as_json,
    )


def reset(
    session: SessionKey,
    *,
    server: ServerUrl = None,
    token: TokenText = None,
    as_json: AsJson = False,
) -> None:
    """Let a session follow the wider settings again, as /queue reset does."""
    from headway.cli.asking import look
    from headway.cli.sessions.telling import session_lines

    look(
        server,
        token,
        lambda client: client.sessions.reset_queue(session),
        session_lines,
        json=as_json,
    )


def clear(
    session: SessionKey,
    *,
    server: ServerUrl = None,
    token: TokenText = None,
    as_json: AsJson = False,
) -> None:
    """End all messages that wait in a session, as /queue clear does; what runs goes on."""
    from headway.cli.answers import count_of
    from headway.cli.asking import look

    look(
        server,
        token,
        lambda client: client.sessions.clear(session),
        lambda answer: f"{count_of(answer.cleared, 'message')} ended",
        json=as_json,
    )
