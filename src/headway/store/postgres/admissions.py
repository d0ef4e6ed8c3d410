"""New runs: gathered while the last ones are being kept, then kept together (N-6, N-15)."""

import asyncio
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from headway.model.run import Run, SessionKey
from headway.model.settings import Settings
from headway.model.time import Instant
from headway.model.words import Source
from headway.ports import Admission
from headway.store.codec import encode_run
from headway.store.keys import keys_of

MOST_AT_ONCE = 500
MOST_BYTES = 4_000_000
"""A batch must be written within a moment: of many large texts the rest goes into the next one."""
BETWEEN = "\x1f"
"""Between the ids of ancestors in one text; it is in no id."""
_TASK = Source.TASK


class Asked(NamedTuple):
    """A run that waits to be kept."""

    run: Run
    retry: bool
    claim: bool
    answer: "asyncio.Future[Admission]"


class AdmissionBatch:
    """Runs in columns, as the functions `admit_v1` and `admit_checked_v1` take them."""

    def __init__(self, asked: Sequence[Asked], settings: Settings, now: Instant) -> None:
        self.asked = asked
        self.checked = False
        """Whether anything may speak against a run of it."""
        ageing = settings.ageing
        runs = [one.run for one in asked]
        self.ids = [run.id for run in runs]
        self.sessions_of = [run.session for run in runs]
        self.agents = [run.agent for run in runs]
        lanes = [run.lane for run in runs]
        tasks = [run.source is _TASK for run in runs]
        ready = [run.submitted_at if run.due_at is None else run.due_at for run in runs]
        ranks = [at + run.priority * ageing for at, run in zip(ready, runs, strict=True)]
        deadlines = [run.deadline_at for run in runs]
        self._rows = (lanes, tasks, ranks, ready, deadlines, [encode_run(run) for run in runs])
        self.roots: list[str | None] = [None] * len(runs)
        self.ancestors: list[str | None] = [None] * len(runs)
        self.keys: tuple[list[object], ...] = ([], [], [], [], [])
        """Each key of the batch: place of its run, run, text, end, and whether it is an idempotency key."""
        self._keys_of: list[list[str | None]] = [[], []]
        self.tasks = sum(tasks)
        for place, run in enumerate(runs):
            if run.ancestors:
                self.checked = True
                self.roots[place] = run.root
                self.ancestors[place] = BETWEEN.join(run.ancestors)
            if run.message_id is not None or run.idempotency_key is not None:
                self._add_keys(place, run, settings, now)
        self._group(lanes, ranks, ready, deadlines)

    def _add_keys(self, place: int, run: Run, settings: Settings, now: Instant) -> None:
        self.checked = True
        if not self._keys_of[0]:
            self._keys_of = [[None] * len(self.ids), [None] * len(self.ids)]
        for which, key in enumerate(keys_of(run)):
            self._keys_of[which][place] = key.text
            row = (place + 1, run.id, key.text, now + key.lasts(settings), key.idempotency)
            for column, value in zip(self.keys, row, strict=True):
                column.append(value)

    def _group(
        self,
        lanes: Sequence[str],
        ranks: Sequence[int],
        ready: Sequence[Instant],
        deadlines: Sequence[Instant | None],
    ) -> None:
        """Sessions sorted, each once; what is ready first speaks for its session."""
        sessions_of = self.sessions_of
        self.sessions: list[SessionKey] = sorted(set(sessions_of))
        count = len(self.sessions)
        if count == len(sessions_of):
            order = sorted(range(count), key=sessions_of.__getitem__)
            self.of = [0] * count
            for number, place in enumerate(order, 1):
                self.of[place] = number
            self.nth = [1] * count
            self.counts = [1] * count
            first = order
            urgent = [deadlines[place] for place in order]
        else:
            number_of = {session: number for number, session in enumerate(self.sessions, 1)}
            self.of = [number_of[session] for session in sessions_of]
            self.counts = [0] * count
            self.nth = []
            first = [-1] * count
            urgent = [None] * count
            for place, number in enumerate(self.of):
                at = number - 1
                self.counts[at] += 1
                self.nth.append(self.counts[at])
                if first[at] < 0 or ready[place] < ready[first[at]]:
                    first[at] = place
                deadline, known = deadlines[place], urgent[at]
                if deadline is not None and (known is None or deadline < known):
                    urgent[at] = deadline
        claims: list[bool] = [False] * count
        for place in range(len(sessions_of) - 1, -1, -1):
            claims[self.of[place] - 1] = self.asked[place].claim
        self._groups = (
            claims,
            [lanes[place] for place in first],
            [self.agents[place] for place in first],
            [ranks[place] for place in first],
            [ready[place] for place in first],
            urgent,
        )

    def columns(self, node: int, now: Instant) -> list[object]:
        """The arguments of `admit_v1`."""
        groups = (self.sessions, self.counts, *self._groups)
        places = (self.ids, self.sessions_of, self.of, self.nth, self.agents, *self._rows)
        return [node, now, *groups, *places, self.roots, self.ancestors, *self._keys_of]

    def checks(self) -> list[object]:
        """What `admit_checked_v1` takes besides, before the limits."""
        return [
            [one.claim for one in self.asked],
            [one.retry for one in self.asked],
            *self.keys,
        ]


def size_of(run: Run) -> int:
    """About how much of it is to be written: what people and programs say can be long."""
    if run.task is None or not run.task.params:
        return len(run.text)
    try:
        return len(run.text) + len(str(run.task.params))
    except RecursionError:
        return MOST_BYTES


def without_clashes(asked: Iterable[Asked]) -> tuple[list[Asked], list[Asked]]:
    """One batch, and what must wait for the next: of runs with the same key or id only the first is in a batch."""
    batch: list[Asked] = []
    later: list[Asked] = []
    taken: set[str] = set()
    size = 0
    for one in asked:
        run = one.run
        if size > MOST_BYTES:
            later.append(one)
            continue
        size += size_of(run)
        if run.message_id is not None or run.idempotency_key is not None:
            keys = {key.text for key in keys_of(run)}
            if keys & taken:
                later.append(one)
                continue
            taken |= keys
        batch.append(one)
    return batch, later
