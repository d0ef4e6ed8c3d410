"""`headway run`: ask an agent for a piece of work, and see it through."""

from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from headway.wire.messages import MessageAnswer, MessageRequest


def run(
    agent: AgentArgument,
    text: TextArgument = None,
    *,
    session: Session = None,
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
    """Ask an agent for a piece of work; wait for its end, show its output and its reply.

    Without --session it is on its own and waits for nobody. To write as a
    person in a conversation, with modes and debounce: `headway send`. To look
    at what was asked: `headway runs`.

    \b
    headway run echo hello
    git diff | headway run reviewer - > review.md
    """
    from headway.cli.exits import errors_told
    from headway.cli.messages import text_of
    from headway.wire.messages import MessageRequest

    with errors_told():
        said = text_of(text)
    message = MessageRequest(
        agent_id=agent,
        text=said,
        session=session,
        lane=lane,
        priority=priority,
        deadline=deadline,
        idempotency_key=key,
    )
    ask_and_follow(server, token, message, wait=wait, quiet=quiet, as_json=as_json)


def ask_and_follow(
    server: str | None,
    token: str | None,
    message: "MessageRequest",
    *,
    wait: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Hand a message over; then show what becomes of it, or only which run it is."""
    from headway.cli.asking import ask
    from headway.cli.following import follow_to_end

    taken = ask(server, token, lambda client: client.send(message))
    if wait and taken.run_id is not None:
        follow_to_end(server, token, taken.run_id, as_json=as_json, quiet=quiet, taken=True)
    else:
        _tell_taken(taken, as_json=as_json)


def _tell_taken(taken: "MessageAnswer", *, as_json: bool) -> None:
    from headway.cli.answers import as_json as json_of
    from headway.cli.printing import print_all

    if as_json:
        print_all(json_of(taken))
    elif taken.command:
        print_all(taken.reply or "")
    else:
        print_all(f"taken: run {taken.run_id} ({taken.state}) in session {taken.session}")
