"""Everything that was heard of the demo's Headway, as picture and summary need it."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from headway.cli.demo.promises import Promises
from headway.cli.demo.words import in_words
from headway.model.events import (
    Event,
    MessageSteered,
    RunFinished,
    RunQueuedAgain,
    RunsMerged,
    RunStarted,
    RunSubmitted,
    SessionStopped,
)
from headway.model.run import RunId
from headway.model.time import Instant, Span
from headway.model.words import Reason, Source, State

_KEPT_NOTES = 60


@dataclass
class Entry:
    """What was heard of one run."""

    agent: str
    session: str
    lane: str
    source: Source
    asked_at: Instant
    first_start_at: Instant | None = None
    attempt_at: Instant | None = None
    """When the attempt that runs now began."""
    ended: RunFinished | None = None

    @property
    def running(self) -> bool:
        return self.attempt_at is not None

    @property
    def wait(self) -> Span | None:
        return None if self.first_start_at is None else self.first_start_at - self.asked_at


@dataclass
class Note:
    """A line of the ticker; the same line again only counts up."""

    at: Instant
    text: str
    count: int = 1


@dataclass
class Tally:
    """The figures of one agent. `runs` is the sum of all that follow up to `failed`."""

    runs: int = 0
    done: int = 0
    cancelled: int = 0
    merged: int = 0
    dropped: int = 0
    failed: int = 0
    waits: list[Span] = field(default_factory=list)

    @property
    def mean_wait(self) -> float:
        return sum(self.waits) / len(self.waits) if self.waits else 0.0


class Record:
    """Hears events in their order, and answers what they add up to."""

    def __init__(self, promises: Promises, began_at: Instant = 0) -> None:
        self.promises = promises
        self.began_at = began_at
        self.runs: dict[RunId, Entry] = {}
        self.slots: dict[str, list[RunId | None]] = {}
        """The slots of each lane. A run keeps its place, so that the eye can follow it."""
        self.last_end: dict[str, RunFinished] = {}
        self.notes: deque[Note] = deque(maxlen=_KEPT_NOTES)

    def hear(self, event: Event) -> str | None:
        """Take an event in; answers a line about it if it is notable."""
        self.promises.hear(event)
        match event:
            case RunSubmitted():
                self.runs[event.run_id] = Entry(
                    event.agent, event.session, event.lane, event.source, event.at
                )
            case RunsMerged(run_id=run_id, parts=parts):
                first = self.runs[parts[0]]
                self.runs[run_id] = Entry(
                    first.agent, first.session, first.lane, first.source, first.asked_at
                )
            case RunStarted():
                self._start(event)
            case RunQueuedAgain(run_id=run_id):
                self._step_down(run_id)
            case RunFinished(run_id=run_id):
                self._step_down(run_id)
                self.runs[run_id].ended = event
                if event.attempt:
                    self.last_end[event.session] = event
            case _:
                pass
        text = in_words(event, *self._subject(event))
        if text is not None:
            self._note(event.at, text)
        return text

    def running(self) -> Iterator[Entry]:
        return (self.runs[run_id] for lane in self.slots.values() for run_id in lane if run_id)

    def tallies(self) -> dict[str, Tally]:
        """The figures of each agent that was asked for something."""
        found: dict[str, Tally] = {}
        for entry in self.runs.values():
            tally = found.setdefault(entry.agent, Tally())
            tally.runs += 1
            if entry.wait is not None:
                tally.waits.append(entry.wait)
            match entry.ended:
                case None:
                    pass
                case RunFinished(state=State.DONE):
                    tally.done += 1
                case RunFinished(reason=Reason.MERGED):
                    tally.merged += 1
                case RunFinished(reason=Reason.QUEUE_DROPPED):
                    tally.dropped += 1
                case RunFinished(state=State.CANCELLED):
                    tally.cancelled += 1
                case _:
                    tally.failed += 1
        return found

    def _start(self, event: RunStarted) -> None:
        entry = self.runs[event.run_id]
        entry.attempt_at = event.at
        if entry.first_start_at is None:
            entry.first_start_at = event.at
        slots = self.slots.setdefault(event.lane, [])
        if None in slots:
            slots[slots.index(None)] = event.run_id
        else:
            slots.append(event.run_id)

    def _step_down(self, run_id: RunId) -> None:
        entry = self.runs[run_id]
        if entry.running:
            entry.attempt_at = None
            slots = self.slots[entry.lane]
            slots[slots.index(run_id)] = None

    def _subject(self, event: Event) -> tuple[str, str]:
        """The session and the agent that an event is about."""
        match event:
            case RunsMerged(run_id=run_id) | MessageSteered(into=run_id):
                entry = self.runs[run_id]
                return entry.session, entry.agent
            case RunSubmitted() | RunStarted() | RunFinished() | RunQueuedAgain():
                return event.session, event.agent
            case SessionStopped(session=session):
                return session, ""
            case _:
                return "", ""

    def _note(self, at: Instant, text: str) -> None:
        if self.notes and self.notes[-1].text == text:
            self.notes[-1].count += 1
            self.notes[-1].at = at
        else:
            self.notes.append(Note(at, text))
