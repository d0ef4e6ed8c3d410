"""What Headway promises, held against the events it published.

Nothing here trusts the scheduler's own counts.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headway.model.events import (
    Event,
    EventsMissed,
    LaneChanged,
    RunFinished,
    RunQueuedAgain,
    RunsMerged,
    RunStarted,
    RunSubmitted,
)
from headway.model.run import RunId
from headway.model.time import Instant
from headway.model.words import Source


@dataclass(frozen=True)
class Verdict:
    """One promise, what was seen of it, and every time it was broken."""

    promise: str
    seen: str
    broken: tuple[str, ...] = ()

    @property
    def kept(self) -> bool:
        return not self.broken


@dataclass
class _Promise:
    text: str
    broken: list[str] = field(default_factory=list)

    def verdict(self, seen: str) -> Verdict:
        return Verdict(self.text, seen, tuple(self.broken))


@dataclass
class _Asked:
    """A run that has no outcome yet."""

    session: str
    task_of: str | None
    started: bool = False


@dataclass
class _Lane:
    widths: list[tuple[Instant, int]]
    running: int = 0
    most: int = 0

    def allows(self, instant: Instant) -> int:
        """The width for a start that was decided then, and is heard of now.

        A resize is heard of at once, a start a moment later: one that was decided just before its
        lane shrank was right, and so is one that the last resize itself allowed.
        """
        then = [width for at, width in self.widths if at <= instant]
        return max([*then[-1:], *(width for _, width in self.widths[-1:])], default=0)


class Promises:
    """Listens to every event from the first one on."""

    def __init__(self, lanes: Mapping[str, int], tasks_at_once: Mapping[str, int]) -> None:
        self._lanes = {name: _Lane([(0, width)]) for name, width in lanes.items()}
        self._tasks_at_once = tasks_at_once
        self._tasks: dict[str, int] = {}
        self._most_tasks = 0
        self._asked: dict[RunId, _Asked] = {}
        self._lines: dict[str, list[RunId]] = {}
        """The runs of each session that have not started, in the order of asking."""
        self._running: dict[RunId, str] = {}
        """Live attempts with their lane."""
        self._busy: dict[str, set[RunId]] = {}
        self._turns = 0
        self._runs = 0
        self._ended: set[RunId] = set()
        self._one = _Promise("One turn at a time in every session")
        self._order = _Promise("Every session in the order it was asked")
        self._width = _Promise("No lane ever over its width")
        self._quota = _Promise("No agent over its tasks at once")
        self._outcome = _Promise("Every run ended exactly once")

    def hear_all(self, events: Iterable[Event]) -> "Promises":
        for event in events:
            self.hear(event)
        return self

    def hear(self, event: Event) -> None:
        match event:
            case RunSubmitted(run_id=run_id, session=session):
                task_of = event.agent if event.source is Source.TASK else None
                self._asked[run_id] = _Asked(session, task_of)
                self._lines.setdefault(session, []).append(run_id)
                self._runs += 1
            case RunsMerged(run_id=run_id, session=session, parts=parts):
                self._asked[run_id] = _Asked(session, None)
                line = self._lines.setdefault(session, [])
                place = line.index(parts[0]) if parts[0] in line else len(line)
                line.insert(place, run_id)
                self._runs += 1
            case RunStarted():
                self._start(event)
            case RunQueuedAgain(run_id=run_id):
                self._step_down(run_id)
            case RunFinished():
                self._finish(event)
            case LaneChanged(lane=lane, width=width):
                self._lanes.setdefault(lane, _Lane([])).widths.append((event.at, width))
            case EventsMissed(count=count):
                self._outcome.broken.append(f"{count} events were missed: nobody can tell")
            case _:
                pass

    def verdicts(self) -> tuple[Verdict, ...]:
        """What became of each promise. To be asked when everything is over."""
        outcome = _Promise(self._outcome.text, [*self._outcome.broken])
        outcome.broken += [f"run {run_id} has no outcome" for run_id in self._asked]
        peaks = ", ".join(
            f"{name} {lane.most}/{max(width for _, width in lane.widths)}"
            for name, lane in self._lanes.items()
        )
        return (
            self._one.verdict(f"{self._turns} turns in {len(self._lines)} sessions"),
            self._order.verdict(f"{self._runs} runs in {len(self._lines)} lines"),
            self._width.verdict(peaks),
            self._quota.verdict(f"at most {self._most_tasks} in flight"),
            outcome.verdict(f"{self._runs} runs, {len(self._ended)} outcomes"),
        )

    def _start(self, event: RunStarted) -> None:
        run_id, session = event.run_id, event.session
        self._turns += 1
        self._check_session(run_id, session)
        self._running[run_id] = event.lane
        lane = self._lanes.setdefault(event.lane, _Lane([]))
        lane.running += 1
        lane.most = max(lane.most, lane.running)
        width = lane.allows(event.at)
        if lane.running > width:
            self._width.broken.append(f"{lane.running} ran in lane {event.lane} of {width}")
        self._count_task(run_id, 1)

    def _check_session(self, run_id: RunId, session: str) -> None:
        busy = self._busy.setdefault(session, set())
        if busy:
            self._one.broken.append(f"{session} ran {len(busy) + 1} turns at once")
        busy.add(run_id)
        asked = self._asked.get(run_id)
        if asked is None:
            self._outcome.broken.append(f"run {run_id} started, and was over or never asked for")
            return
        line = self._lines[session]
        if not asked.started:
            if line[0] != run_id:
                self._order.broken.append(f"{session}: run {run_id} overtook {line[0]}")
            line.remove(run_id)
            asked.started = True

    def _count_task(self, run_id: RunId, step: int) -> None:
        asked = self._asked.get(run_id)
        if asked is None or asked.task_of is None:
            return
        agent = asked.task_of
        tasks = self._tasks[agent] = self._tasks.get(agent, 0) + step
        self._most_tasks = max(self._most_tasks, tasks)
        allowed = self._tasks_at_once.get(agent)
        if step > 0 and allowed is not None and tasks > allowed:
            self._quota.broken.append(f"{agent} had {tasks} tasks in flight, allowed are {allowed}")

    def _step_down(self, run_id: RunId) -> None:
        lane = self._running.pop(run_id, None)
        if lane is None:
            return
        self._lanes[lane].running -= 1
        self._count_task(run_id, -1)
        asked = self._asked.get(run_id)
        if asked is not None:
            self._busy[asked.session].discard(run_id)

    def _finish(self, event: RunFinished) -> None:
        run_id = event.run_id
        self._step_down(run_id)
        asked = self._asked.pop(run_id, None)
        if asked is None:
            self._outcome.broken.append(f"run {run_id} ended, and was over or never asked for")
            return
        self._ended.add(run_id)
        if not asked.started:
            self._lines[asked.session].remove(run_id)
