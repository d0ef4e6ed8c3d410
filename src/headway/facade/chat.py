"""Chat commands: seen before the debouncer, carried out at once, answered in a line or two (S-5, S-9)."""

from typing import assert_never

from headway.core import commands
from headway.model.errors import InvalidInput
from headway.model.run import Route, SessionKey
from headway.model.time import Instant
from headway.runtime.engine import Engine


async def carry_out(
    engine: Engine,
    key: SessionKey,
    text: str,
    *,
    sent_at: Instant | None = None,
    message_id: str | None = None,
    route: Route | None = None,
) -> str | None:
    """The reply to a command; None if the text is none.

    A `/queue` that cannot be understood is answered with what is allowed.
    """
    try:
        command = commands.parse(text)
    except InvalidInput as wrong:
        return str(wrong)
    match command:
        case None:
            return None
        case commands.StopOne():
            return str(await engine.stop(key))
        case commands.StopEverything():
            stopped = await engine.stop_all(
                key, sent_at=sent_at, message_id=message_id, route=route
            )
            return str(stopped)
        case commands.Status():
            return await engine.status(key)
        case commands.QueueStatus():
            return await engine.queue_status(key, route)
        case commands.QueueClear():
            return f"{await engine.clear_session(key)} waiting cleared"
        case commands.QueueReset():
            await engine.configure(key, None)
            return "queue options reset"
        case commands.QueueSet(options):
            await engine.configure(key, options, change=True)
            return await engine.queue_status(key, route)
        case other:
            assert_never(other)
