"""Looking at workers: who is there, whether it answers, and whether it does anything (D-8)."""

import asyncio

from headway.calls import in_thread
from headway.model.run import RunId
from headway.model.time import Instant
from headway.model.value import Value
from headway.model.words import WorkerKind
from headway.model.worker import MAX_LINE, MAX_LINES
from headway.runners.attached import State, ask_state
from headway.runners.home import About, Attempt, End, WorkerHome, is_held, read_about, read_end
from headway.runners.keeper import Process, descendants, processes
from headway.runners.live import tail
from headway.turn import Sight

_TICKS = 5
"""Less computing than this between two looks is none: a program that only waits wakes up now and then."""


class Found(Value, frozen=True):
    """A worker as its folder and the system show it."""

    attempt: Attempt
    lives: bool
    """Whether its keeper does."""
    about: About | None
    end: End | None
    cpu: int
    """How much its processes have computed, in ticks."""
    leftover: bool
    """Whether something of it goes on without its keeper."""


class Eyes:
    """Looks at all workers of one agent, and remembers what it saw the last time."""

    def __init__(self, home: WorkerHome, agent: str) -> None:
        self._home = home
        self._agent = agent
        self._before: dict[tuple[RunId, int], tuple[int, int]] = {}

    async def look(self) -> list[Sight]:
        found = await in_thread(self._survey)
        states = await asyncio.gather(
            *(ask_state(worker.attempt.folder) for worker in found if worker.lives)
        )
        waiting = iter(states)
        sights = [self._sight(worker, next(waiting) if worker.lives else None) for worker in found]
        there = {(sight.run_id, sight.attempt) for sight in sights if not sight.over}
        self._before = {key: seen for key, seen in self._before.items() if key in there}
        return sights

    def _survey(self) -> list[Found]:
        """What can be seen without asking. Blocks."""
        attempts = self._home.attempts(self._agent)
        table = processes() if attempts else {}
        return [_find(attempt, table) for attempt in attempts]

    def _sight(self, worker: Found, state: State | None) -> Sight:
        about, end = worker.about, worker.end
        output, dropped = (b"", 0) if end is None else (end.output, end.dropped)
        if state is not None:
            output, dropped = state.output, state.written - len(state.output)
        return Sight(
            run_id=worker.attempt.run_id,
            attempt=worker.attempt.number,
            kind=WorkerKind.COMMAND,
            pid=0 if about is None else about.leader or about.pid,
            born=0.0 if about is None else about.leader_born or about.born,
            started_at=_began(worker),
            answers=state is not None,
            over=not worker.lives and not worker.leftover,
            busy=self._is_busy(worker, state),
            lines=_lines(tail(output, dropped)),
            adopted=about is not None and about.adopted,
            exit_code=None if end is None else end.exit,
        )

    def _is_busy(self, worker: Found, state: State | None) -> bool | None:
        """Whether it wrote or computed something since the last look."""
        if state is None:
            return None
        key = (worker.attempt.run_id, worker.attempt.number)
        before = self._before.get(key)
        self._before[key] = state.written, worker.cpu
        if before is None:
            return None
        return state.written != before[0] or abs(worker.cpu - before[1]) >= _TICKS


def _find(attempt: Attempt, table: dict[int, Process]) -> Found:
    # In this order: of one that is dead, what it wrote down last is there.
    lives = is_held(attempt.folder)
    about, end = read_about(attempt.folder), read_end(attempt.folder)
    return Found(
        attempt=attempt,
        lives=lives,
        about=about,
        end=end,
        cpu=_computed(about, table) if lives else 0,
        leftover=not lives and end is None and _has_left_something(about),
    )


def _computed(about: About | None, table: dict[int, Process]) -> int:
    if about is None or not about.is_here:
        return 0
    return sum(table[pid].cpu for pid in descendants(table, about.pid))


def _has_left_something(about: About | None) -> bool:
    # It loads slowly, and is seldom needed.
    from headway.runners.outside import left_of  # noqa: PLC0415

    return bool(left_of(about))


def _began(worker: Found) -> Instant:
    if worker.about is not None:
        return worker.about.started_at
    try:
        return worker.attempt.folder.stat().st_mtime_ns // 1_000
    except OSError:
        return 0


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line[:MAX_LINE] for line in text.splitlines()[-MAX_LINES:])
