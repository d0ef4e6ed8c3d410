"""What can be asked about the outbox: what waits to be said on channels, and what was given up."""

from headway.gateway.access.caller import Caller
from headway.gateway.desk import Desk
from headway.gateway.errors import NotThere
from headway.gateway.operations import operation
from headway.model.words import Scope
from headway.wire.outbox import (
    LetterPage,
    LetterPath,
    LetterRetried,
    LettersQuery,
    letter_answer,
)


@operation(Scope.READ)
async def list_letters(desk: Desk, caller: Caller, asked: LettersQuery) -> LetterPage:
    """List what was given up, with `state=waiting` what is still to be delivered, or `all`; the oldest first.

    A token for one agent cannot see it: letters of all agents are in one outbox.
    """
    caller.need_all_agents()
    dead = None if asked.state == "all" else asked.state == "dead"
    page = await desk.hw.letters(
        dead=dead, channel=asked.channel, limit=asked.limit, cursor=asked.cursor
    )
    return LetterPage(letters=tuple(map(letter_answer, page.letters)), cursor=page.cursor)


@operation(Scope.CONTROL)
async def retry_letter(desk: Desk, caller: Caller, asked: LetterPath) -> LetterRetried:
    """Deliver a dead letter after all, as if it were new."""
    caller.need_all_agents()
    if not await desk.hw.retry_letter(asked.id):
        raise NotThere("letter", asked.id)
    return LetterRetried(id=asked.id)
