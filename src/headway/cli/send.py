"""`headway send`: write to an agent as a person on a channel does."""

from typing import Annotated

import typer

from headway.cli.messages import (
    AgentArgument,
    Deadline,
    Key,
    Lane,
    Priority,
    Quiet,
    Session,
    TextArgument,
    Wait,
)
from headway.cli.options import AsJson, ServerUrl, TokenText
from headway.model.words import Drop, Mode, SteerFallback

_FROM = "Where it comes from"
_QUEUE = "While its session is busy"


def send(
    agent: AgentArgument,
    text: TextArgument = None,
    *,
    session: Session = None,
    channel: Annotated[
        str | None,
        typer.Option(metavar="NAME", rich_help_panel=_FROM, help="The channel it was written on."),
    ] = None,
    account: Annotated[
        str, typer.Option(rich_help_panel=_FROM, help="The account there that got it.")
    ] = "",
    peer: Annotated[str, typer.Option(rich_help_panel=_FROM, help="Who or which room it is.")] = "",
    thread: Annotated[str, typer.Option(rich_help_panel=_FROM, help="The thread in it.")] = "",
    sender: Annotated[
        str | None, typer.Option(rich_help_panel=_FROM, help="Who wrote it (you).")
    ] = None,
    message_id: Annotated[
        str | None,
        typer.Option(
            metavar="ID", rich_help_panel=_FROM, help="The channel's id: it is not taken twice."
        ),
    ] = None,
    attach: Annotated[
        list[str] | None,
        typer.Option(metavar="URL", rich_help_panel=_FROM, help="Something that goes with it."),
    ] = None,
    mode: Annotated[
        Mode | None, typer.Option(rich_help_panel=_QUEUE, help="What it does then.")
    ] = None,
    debounce: Annotated[
        str | None,
        typer.Option(metavar="DURATION", rich_help_panel=_QUEUE, help="Wait for more text first."),
    ] = None,
    cap: Annotated[
        int | None, typer.Option(min=1, rich_help_panel=_QUEUE, help="So many may wait.")
    ] = None,
    drop: Annotated[
        Drop | None, typer.Option(rich_help_panel=_QUEUE, help="Who gives way if more do.")
    ] = None,
    steer_fallback: Annotated[
        SteerFallback | None,
        typer.Option(rich_help_panel=_QUEUE, help="If the turn cannot be steered."),
    ] = None,
    max_concurrent: Annotated[
        int | None, typer.Option(min=1, rich_help_panel=_QUEUE, help="So many turns at once.")
    ] = None,
    lane: Lane = None,
    priority: Priority = None,
    deadline: Deadline = None,
    key: Key = None,
    wait: Wait = True,
    quiet: Quiet = False,
    server: ServerUrl = None,
    token: TokenText = None,
    as_json: AsJson = False,
) -> None:
    """Write a message to an agent, as a person would on a channel, and wait for the reply.

    It goes into your own conversation with the agent, unless --session or
    --channel names another one. Chat commands work: /stop, /status, /queue …

    \b
    headway send support 'Where is my order?'
    headway send support 'never mind' --mode interrupt
    headway send support /status
    """
    from msgspec import UNSET

    from headway.cli.exits import errors_told
    from headway.cli.messages import own_session, text_of, user_name
    from headway.cli.run import ask_and_follow
    from headway.wire.messages import AttachmentRequest, MessageRequest, SenderRequest

    with errors_told():
        said = text_of(text, may_be_empty=bool(attach))
    if session is None and channel is None:
        session = own_session(agent)
    message = MessageRequest(
        agent_id=agent,
        text=said,
        session=session,
        channel=UNSET if channel is None else channel,
        account=account,
        peer=peer,
        thread=thread,
        sender=SenderRequest(id=sender or user_name()),
        message_id=message_id,
        attachments=tuple(
            AttachmentRequest(name=url.rstrip("/").rpartition("/")[2] or url, url=url)
            for url in attach or ()
        ),
        mode=mode,
        cap=cap,
        drop=drop,
        debounce=debounce,
        steer_fallback=steer_fallback,
        max_concurrent=max_concurrent,
        lane=lane,
        priority=priority,
        deadline=deadline,
        idempotency_key=key,
    )
    ask_and_follow(server, token, message, wait=wait, quiet=quiet, as_json=as_json)
