"""The page of events: the whole catalogue, each event with its fields."""

from collections.abc import Mapping

import msgspec

from headway.events import CATALOGUE, Event, RunFinished
from headway.model.run import AgentName, LaneName, RunId, SessionKey
from headway.model.telling import kind_of, told
from headway.model.time import SECOND
from headway.model.words import Cut, Fired, HeartbeatSkip, Reason, Source, State, Word
from tools.reference.meanings import meaning_of
from tools.reference.source import fields_of
from tools.reference.tables import NOTE, code, default_of, table, word_table

_WORDS: Mapping[type[Word], str] = {
    State: "Where a run is in its life",
    Reason: "Why a run ended as it did",
    Cut: "Why a live attempt is being cancelled",
    Source: "Who asked for a run",
    Fired: "What became of a firing of a job",
    HeartbeatSkip: "Why an agent was not woken, or nobody was told what it answered",
}

_INTRO = """\
Everything that can be heard from a node. In a program: `async for event in hw.events()`. A listener that is
slow keeps the latest 10,000; `hw.events(keep=100)` asks for another number. The classes are in
`headway.events`, to match on. From a server: `GET /events`, `events.subscribe` over RPC, `headway events`.

Every event has `at`, the instant at which it happened. A server writes all of them to its log, one line of JSON
each, with `level`: **notable** events are warnings, what turns emit (`OutputEmitted`, `TokensUsed`) is `debug`,
the rest `info`. Elsewhere notable events are logged, whether somebody listens or not, at the level WARNING by
the logger `headway`. A condition that lasts is logged when it changes, not each time that it is met; `heldBack`
then says how many lines were left out.

An event has one form in JSON, in the log, the stream and RPC alike: names in camelCase, instants in RFC 3339,
spans as durations, and `event` says which one it is:"""

_TYPES = """\
In Python an `Instant` is a whole number of microseconds since 1970 UTC and a `Span` a whole number of
microseconds; `RunId`, `SessionKey`, `AgentName` and `LaneName` are texts."""

_SAMPLE = RunFinished(
    at=1_750_000_000_000_000,
    run_id=RunId("1k3f9a2xq-42"),
    agent=AgentName("support"),
    session=SessionKey("telegram:dm:42"),
    lane=LaneName("main"),
    attempt=1,
    state=State.CANCELLED,
    reason=Reason.STOPPED,
    source=Source.MESSAGE,
    took=3 * SECOND,
)


def events_page() -> str:
    index = [
        (
            f"[`{event.__name__}`](#{event.__name__.lower()})",
            _meaning(event),
            "yes" if event.notable else "",
        )
        for event in CATALOGUE
    ]
    sample = msgspec.json.format(msgspec.json.encode(told(_SAMPLE)), indent=2).decode()
    lines = ["# Events", "", NOTE, "", _INTRO, "", "```json", sample, "```", ""]
    lines += [_TYPES, "", *table(("event", "when", "notable"), index)]
    for event in CATALOGUE:
        lines += ["", f"## {event.__name__}", "", _meaning(event), ""]
        if kind_of(event) != event.__name__:
            lines += [f"In JSON it is called `{kind_of(event)}`.", ""]
        rows = [
            (f"`{field.name}`", code(field.type), default_of(event, field))
            for field in fields_of(event)
        ]
        lines += (
            table(("field", "type", "default"), rows) if rows else ["It has no fields but `at`."]
        )
    lines += ["", "## Words", "", "The closed lists that events use.", "", *word_table(_WORDS)]
    return "\n".join(lines) + "\n"


def _meaning(event: type[Event]) -> str:
    return meaning_of(event.__name__, vars(event).get("__doc__"))
