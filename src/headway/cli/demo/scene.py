"""One moment of the demo as plain values, read from Headway's views and from what was heard."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from headway import Headway, SessionView
from headway.cli.demo.cast import AGENTS, CHATS, chat_session
from headway.cli.demo.record import Entry, Note, Record
from headway.cli.demo.words import why_in_words
from headway.model.run import RunId
from headway.model.time import SECOND, Instant
from headway.model.words import Reason, Source, State

_AFTERGLOW = SECOND
"""How long a chat still shows how its last turn ended."""


class Doing(Enum):
    """What a row is at."""

    IDLE = "idle"
    TYPING = "typing"
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    CUT = "cut"


@dataclass(frozen=True)
class Row:
    """A chat, or a group of work that is no chat."""

    name: str
    agent: str
    doing: Doing = Doing.IDLE
    text: str = ""
    waiting: int = 0


@dataclass(frozen=True)
class LaneRow:
    """A lane: who runs in which slot, and who waits."""

    name: str
    width: int
    running: int
    slots: tuple[str | None, ...]
    waiting: tuple[str, ...]


@dataclass
class Programme:
    """Where the story is."""

    seconds: float
    title: str = ""
    line: str = ""


@dataclass(frozen=True)
class Scene:
    """All that one frame shows."""

    title: str
    line: str
    elapsed_s: float
    seconds: float
    lanes: tuple[LaneRow, ...]
    crew: Mapping[str, int]
    rows: tuple[Row, ...]
    notes: tuple[Note, ...] = ()
    began_at: Instant = 0

    @property
    def busyness(self) -> int:
        """How much there is to see."""
        rows = sum(row.doing is not Doing.IDLE for row in self.rows)
        return rows + sum(lane.running + len(lane.waiting) for lane in self.lanes)


@dataclass
class _Looker:
    """Looks at one Headway at one instant."""

    hw: Headway
    record: Record
    now: Instant
    sessions: Mapping[str, SessionView] = field(default_factory=dict)

    async def rows(self) -> list[Row]:
        self.sessions = self.hw.sessions()
        rows = [await self._chat(person, agent) for person, agent in CHATS.items()]
        others = [
            (view, entry)
            for view in self.sessions.values()
            if (entry := self._entry((*view.running, *view.waiting))) is not None
        ]
        tasks = [view for view, entry in others if entry.source is Source.TASK]
        nightly = [view for view, entry in others if entry.agent == "nightly"]
        return [
            *rows,
            await self._group("tasks", "coder", tasks),
            await self._group("nightly", "nightly", nightly),
        ]

    def lanes(self) -> list[LaneRow]:
        waiting: dict[str, list[str]] = {}
        for view in self.hw.sessions().values():
            for run_id in view.waiting:
                if (entry := self.record.runs.get(run_id)) is not None:
                    waiting.setdefault(entry.lane, []).append(entry.agent)
        return [
            LaneRow(
                lane.name,
                lane.width,
                lane.running,
                tuple(
                    self.record.runs[run_id].agent if run_id else None
                    for run_id in self.record.slots.get(lane.name, ())
                ),
                tuple(waiting.get(lane.name, ())),
            )
            for lane in self.hw.lanes().values()
        ]

    async def _chat(self, person: str, agent: str) -> Row:
        view = self.sessions.get(chat_session(person))
        if view is None:
            return self._idle(person, agent)
        waiting = len(view.waiting)
        if view.running:
            helper = self.sessions.get(f"reader:{person}")
            text = f"running {self._running_for(view.running[0]):.1f}s"
            if helper is not None:
                text = "reader works for it" if helper.running else "waits for the reader"
            return Row(person, agent, Doing.RUNNING, text, waiting + len(view.debouncing))
        if view.waiting:
            return Row(person, agent, Doing.QUEUED, await self._why(view.waiting[0]), waiting)
        if view.debouncing:
            count = len(view.debouncing)
            text = f"typing, {count} message{'s' if count > 1 else ''}"
            return Row(person, agent, Doing.TYPING, text)
        return self._idle(person, agent)

    def _idle(self, person: str, agent: str) -> Row:
        end = self.record.last_end.get(chat_session(person))
        if end is None or self.now - end.at > _AFTERGLOW:
            return Row(person, agent)
        if end.state is State.DONE:
            return Row(person, agent, Doing.DONE, "answered")
        word = "stopped" if end.reason is Reason.STOPPED else "ended"
        return Row(person, agent, Doing.CUT, word)

    async def _group(self, name: str, agent: str, views: list[SessionView]) -> Row:
        running = sum(len(view.running) for view in views)
        waiting = [run_id for view in views for run_id in view.waiting]
        if running:
            return Row(name, agent, Doing.RUNNING, f"{running} running", len(waiting))
        if waiting:
            why = (await self._why(waiting[0])).partition(",")[0]
            return Row(name, agent, Doing.QUEUED, why, len(waiting))
        return Row(name, agent)

    def _entry(self, run_ids: Iterable[RunId]) -> Entry | None:
        return next((self.record.runs[run] for run in run_ids if run in self.record.runs), None)

    def _running_for(self, run_id: RunId) -> float:
        entry = self.record.runs.get(run_id)
        began_at = entry.attempt_at if entry is not None else None
        return 0.0 if began_at is None else (self.now - began_at) / SECOND

    async def _why(self, run_id: RunId) -> str:
        return why_in_words(await self.hw.why(run_id))


async def look(hw: Headway, record: Record, programme: Programme, now: Instant) -> Scene:
    """The scene as it is now."""
    looker = _Looker(hw, record, now)
    rows = await looker.rows()
    lanes = looker.lanes()
    crew = dict.fromkeys(AGENTS, 0)
    for entry in record.running():
        crew[entry.agent] += 1
    return Scene(
        programme.title,
        programme.line,
        (now - record.began_at) / SECOND,
        programme.seconds,
        tuple(lanes),
        crew,
        tuple(rows),
        tuple(record.notes),
        record.began_at,
    )
