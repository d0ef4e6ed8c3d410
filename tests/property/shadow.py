"""A store in a few lines: keeps of a kernel's actions what a successor is given, and nothing else."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from headway.core.actions import (
    Action,
    CancelAttempt,
    Enqueue,
    Finish,
    Merge,
    Release,
    Remember,
    Respond,
    Start,
    Steer,
)
from headway.core.endings import FINAL_CUTS
from headway.core.kernel import Kernel
from headway.model.outcome import Outcome
from headway.model.places import Answer, Holding, Order, Place, Standing
from headway.model.run import Run, RunId, SessionKey, SessionMemory
from headway.model.settings import Settings
from headway.model.time import Instant
from headway.model.words import Cut


@dataclass
class Row:
    """An unfinished run."""

    run: Run
    seq: int
    attempt: int = 0
    standing: Standing | None = None
    slot: int | None = None
    """Of its live attempt, if it has one."""
    orphaned: bool = False
    started_at: Instant | None = None
    cut: Cut | None = None


@dataclass
class Shadow:
    """What is stored."""

    rows: dict[RunId, Row] = field(default_factory=dict)
    orders: dict[str, Order] = field(default_factory=dict)
    """Without an answer."""
    last: dict[SessionKey, int] = field(default_factory=dict)
    memories: dict[SessionKey, SessionMemory] = field(default_factory=dict)
    outcomes: dict[RunId, Outcome] = field(default_factory=dict)

    def admit(self, run: Run, seq: int) -> None:
        self.rows[run.id] = Row(run, seq)
        self.last[run.session] = seq

    def record(self, actions: Iterable[Action]) -> None:
        for action in actions:
            self._keep(action)

    def _keep(self, action: Action) -> None:
        match action:
            case Start(run=run, attempt=attempt, at=at, slot=slot):
                row = self.rows[run.id]
                # A copy of the kernel starts anew what was started ahead (`ahead.undo`): the same attempt.
                again = row.slot is not None and row.attempt == attempt
                taken = {
                    other.slot
                    for other in self.rows.values()
                    if other.run.session == run.session and not (again and other is row)
                }
                assert slot not in taken, f"N-11: {run.id} takes slot {slot} of {run.session} twice"
                row.run, row.attempt, row.started_at = run, attempt, at
                row.slot, row.orphaned, row.cut = slot, False, None
            case Enqueue(run=run, attempt=attempt, standing=standing, ended=ended):
                row = self.rows[run.id]
                assert standing is not None
                assert ended == (row.slot is not None), f"{run.id}: an attempt ended, or not"
                row.run, row.attempt, row.standing = run, attempt, standing
                row.slot = row.cut = None
            case CancelAttempt(run=run, cut=cut):
                if cut in FINAL_CUTS:
                    self.rows[run.id].cut = cut
            case Steer(message=message):
                row = self.rows[message.id]
                row.standing = row.standing or Standing(row.seq)
            case Merge(run=run, seq=seq):
                self.rows[run.id] = Row(run, seq)
            case Finish(run=run, outcome=outcome):
                assert run.id not in self.outcomes, f"R-2: {run.id} ended twice"
                del self.rows[run.id]
                self.outcomes[run.id] = outcome
            case Respond(order=order):
                del self.orders[order.id]
            case Remember(session=session, memory=memory):
                self.memories[session] = memory
            case Release(session=session, seen=seen):
                assert seen == self.last.get(session, 0)
                self.last.pop(session, None)
            case _:
                pass

    def lose(self, sessions: Iterable[SessionKey], runs: Iterable[RunId]) -> None:
        for run_id in runs:
            del self.rows[run_id]
        for key in sessions:
            self.last.pop(key, None)

    def bury(self) -> None:
        """The owner is gone: live attempts are orphaned."""
        for row in self.rows.values():
            row.orphaned = row.orphaned or row.slot is not None
            row.slot = None

    def holdings(self, epoch: int) -> list[Holding]:
        """Every session that has something, as its next owner gets it."""
        keys = {row.run.session: None for row in self.rows.values()}
        keys |= {order.session: None for order in self.orders.values()}
        return [self._holding(key, epoch) for key in keys]

    def _holding(self, key: SessionKey, epoch: int) -> Holding:
        places = [
            Place(
                row.run,
                row.seq,
                row.attempt,
                row.standing,
                orphaned=row.orphaned,
                started_at=row.started_at,
                cut=row.cut,
            )
            for row in self.rows.values()
            if row.run.session == key
        ]
        orders = [order for order in self.orders.values() if order.session == key]
        return Holding(
            key,
            epoch,
            self.last.get(key, 0),
            self.memories.get(key),
            tuple(sorted(places, key=lambda place: place.seq)),
            tuple(sorted(orders, key=lambda order: order.seq)),
        )


class Shadowed(Kernel):
    """A kernel whose decisions are stored as they are made."""

    def __init__(self, settings: Settings, now: Instant = 0) -> None:
        super().__init__(settings, now)
        self.shadow = Shadow()
        self._lost: tuple[list[SessionKey], list[RunId]] = [], []

    def submit(
        self,
        run: Run,
        now: Instant,
        epoch: int = 0,
        seq: int = 0,
        memory: SessionMemory | None = None,
    ) -> Outcome | None:
        self.shadow.admit(run, seq)
        return super().submit(run, now, epoch, seq, memory)

    def carry_out(
        self, order: Order, epoch: int, memory: SessionMemory | None, now: Instant
    ) -> Answer:
        self.shadow.orders[order.id] = order
        return super().carry_out(order, epoch, memory, now)

    def lose(self, lost: Iterable[tuple[SessionKey, int]], now: Instant) -> list[RunId]:
        pairs = list(lost)
        forgotten = super().lose(pairs, now)
        self._lost = [key for key, _ in pairs], forgotten
        return forgotten

    def take_actions(self) -> list[Action]:
        actions = super().take_actions()
        self.shadow.record(actions)
        self.shadow.lose(*self._lost)
        self._lost = [], []
        return actions
