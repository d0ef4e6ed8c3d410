"""Methods that do something with their connection: what was sent is followed there, and events come over it."""

from headway.gateway.access.caller import Caller
from headway.gateway.operations import messages
from headway.gateway.operations.events import listener_of
from headway.gateway.rpc.connection import Connection
from headway.gateway.rpc.method import method
from headway.model.run import RunId
from headway.model.words import Scope
from headway.wire.events import Subscribed, SubscribeParams, Unsubscribed
from headway.wire.health import NothingAsked
from headway.wire.messages import MessageAnswer, MessageRequest


@method("chat.send", Scope.SUBMIT)
async def send(connection: Connection, caller: Caller, params: MessageRequest) -> MessageAnswer:
    """Hand a message to its agent, or carry out a chat command; answers at once.

    What becomes of the message follows on this connection: `chat.typing` when the agent begins and stops,
    `chat.output` with what it emits, and at last `chat.reply`. The reply comes also when another node has the
    session.
    """
    connection.conversations.need_room()
    answer = await messages.send(connection.desk, caller, params)
    if answer.run_id is not None and answer.outcome is None:
        connection.conversations.follow(RunId(answer.run_id), answer.session or "")
    return answer


@method("events.subscribe", Scope.READ)
async def subscribe(connection: Connection, caller: Caller, params: SubscribeParams) -> Subscribed:
    """Send events over this connection, as frames {event, id, data}.

    A client that comes back says `after` the id of the last event that it saw and goes on there; what is not
    remembered any more is told of by an EventsMissed event.
    """
    listener = listener_of(connection.desk, caller, params, params.events, params.after)
    connection.subscribe(listener)
    return Subscribed(after=listener.seen)


@method("events.unsubscribe", Scope.READ)
async def unsubscribe(
    connection: Connection,
    caller: Caller,  # noqa: ARG001
    params: NothingAsked,  # noqa: ARG001
) -> Unsubscribed:
    """Send no more events over this connection; messages are followed all the same."""
    return Unsubscribed(subscribed=connection.subscribe(None))


BOUND = (send, subscribe, unsubscribe)
