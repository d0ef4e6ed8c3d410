"""Events in plain words: what a person who watches would like to be told."""

from headway import Stopped
from headway.cli.demo.cast import CHATS, who
from headway.model.events import (
    Event,
    LaneChanged,
    MessageSteered,
    RunFinished,
    RunQueuedAgain,
    RunsMerged,
    RunSubmitted,
    SessionStopped,
)
from headway.model.views import Why
from headway.model.words import Cut, Reason, Rule, Source, State


def in_words(event: Event, session: str, agent: str) -> str | None:
    """A line about a notable event, or None. Session and agent are those of its run, if any."""
    person = who(session, agent)
    match event:
        case RunsMerged(parts=parts):
            return f"{person}: {len(parts)} messages became one turn"
        case MessageSteered():
            return f"{person}: the turn took a new message"
        case RunSubmitted(source=Source.DELEGATION):
            return f"{person}: {CHATS.get(person, 'an agent')} asks {agent}"
        case RunQueuedAgain(cut=Cut.PREEMPTED):
            return f"{person}: made way for a person"
        case SessionStopped(everything=everything, running=running, waiting=waiting):
            command = "/stopall" if everything else "/stop"
            return f"{person}: {command}: {Stopped(running, waiting)}"
        case LaneChanged(lane=lane, width=width):
            return f"lane {lane} is {width} wide now"
        case RunFinished():
            return _end_in_words(event, person)
        case _:
            return None


def _end_in_words(event: RunFinished, person: str) -> str | None:
    match event.reason:
        case Reason.QUEUE_DROPPED:
            return f"{person}: full, oldest was dropped"
        case Reason.SUPERSEDED if event.attempt:
            return f"{person}: a new message took over"
        case _ if event.state in {State.FAILED, State.REJECTED}:
            return f"{person}: {event.state}, {event.error or event.reason}"
        case _:
            return None


_HELD: dict[Rule, str] = {
    Rule.NOT_DUE: "not due yet",
    Rule.RETRY: "tried again soon",
    Rule.COLLECTING: "waits for a quiet moment",
    Rule.SESSION_BUSY: "chat is busy",
    Rule.SESSION_ORDER: "not its turn yet",
    Rule.RATE_LIMITED: "provider asked to wait",
    Rule.AGENT_QUOTA: "agent has its tasks",
    Rule.LANE_PAUSED: "lane is paused",
    Rule.LANE_FULL: "{lane} is full",
    Rule.STARTING: "about to start",
}


def why_in_words(why: Why) -> str:
    """Why a run waits, in a few words."""
    if why.rule is None:
        return "about to start"
    text = _HELD.get(why.rule, why.rule.replace("_", " ")).format(lane=why.lane)
    return f"{text}, {why.place} before it" if why.place else text
