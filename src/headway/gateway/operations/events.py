"""The stream of events, and the live output of a run."""

from collections.abc import Sequence

from headway.gateway.access.caller import Caller
from headway.gateway.desk import Desk
from headway.gateway.operations import operation
from headway.gateway.operations.runs import find
from headway.gateway.stream.admission import need_room
from headway.gateway.stream.choice import wanted
from headway.gateway.stream.journal import Start
from headway.gateway.stream.listener import Listener
from headway.gateway.stream.output import Watch
from headway.gateway.stream.response import EventStream
from headway.gateway.stream.sse import told
from headway.model.words import Scope
from headway.wire.events import EventChoice, EventQuery
from headway.wire.runs import RunPath


@operation(Scope.READ)
async def stream(desk: Desk, caller: Caller, asked: EventQuery) -> EventStream:
    """All that happens on this node from now on, as server-sent events.

    A client that comes back with Last-Event-ID goes on where it was; what is not remembered any more is told of by
    an EventsMissed event. A client that is too slow is cut off. A token that is bound to an agent sees only that
    agent's events. Names of events may be repeated or written with commas.
    """
    need_room(desk)
    after = asked.last_event_id or asked.after
    names = [name for said in asked.event for name in said.split(",")]
    listener = listener_of(desk, caller, asked, names, after, whole=not asked.follow)
    return EventStream(desk, told(listener, follow=asked.follow))


@operation(Scope.READ)
async def output(desk: Desk, caller: Caller, asked: RunPath) -> EventStream:
    """What a run emits, live, as server-sent events: `attempt`, `output`, `again`, and at last `outcome`.

    Who comes late first gets the latest that the present attempt has emitted. A run on another node tells only its
    outcome here.
    """
    view = await find(desk, caller, asked.run_id)
    handle = await desk.hw.engine.handle_of(view.id)
    # Last: who asks at the same time must find the seat taken.
    need_room(desk)
    return EventStream(desk, Watch(desk.journal, handle, desk.settings.stream_backlog).told())


def listener_of(
    desk: Desk,
    caller: Caller,
    asked: EventChoice,
    names: Sequence[str],
    after: str | None,
    *,
    whole: bool = False,
) -> Listener:
    """A listener that hears what was asked for and what this caller may hear.

    It begins where it was asked to; else with what comes next or, if `whole`, with all that is remembered.
    """
    caller.only(asked.agent_id)
    wants = wanted(
        events=names,
        agent=asked.agent_id,
        session=asked.session,
        run_id=asked.run_id,
        bound_to=caller.agent,
    )
    journal = desk.journal
    if after is not None:
        start = journal.start(after)
    elif asked.last or not whole:
        start = journal.latest(asked.last, wants)
    else:
        start = Start(journal.first)
    return Listener(journal, start, desk.settings.stream_backlog, wants)
