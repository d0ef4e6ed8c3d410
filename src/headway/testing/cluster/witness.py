"""Looks on from outside of all nodes, and objects to what must not be.

It knows what was really kept (`faults.Sight`), what agents and channels really did, and reads the database with a
connection of its own. What a dead or frozen node still does in its memory is nobody's business; what it does to
the world is.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from headway.core.actions import (
    Abandon,
    Action,
    CancelAttempt,
    Deliver,
    Enqueue,
    Finish,
    Merge,
    Start,
    session_of,
)
from headway.model.errors import HeadwayError
from headway.model.outcome import Outcome
from headway.model.places import Delivery
from headway.model.run import Run, RunId, SessionKey
from headway.model.settings import Settings
from headway.model.time import MILLISECOND, Span
from headway.model.words import Cut, Mode, Reason, Source, State
from headway.ports import Admission, Elsewhere, Granted, Recorded, TurnedAway
from headway.store.keys import Key, keys_of
from headway.testing.cluster.clocks import WallClock
from headway.testing.cluster.database import Reader
from headway.testing.cluster.journal import Attempt
from headway.testing.cluster.loops import Conductor
from headway.testing.cluster.machines import Machines, Worker
from headway.testing.cluster.timetable import Timetable
from headway.testing.cluster.violation import Broken
from headway.turn import Fence

if TYPE_CHECKING:
    from headway.testing.cluster.nodes import Node

THAW_GRACE: Span = 700 * MILLISECOND
"""How long a process that stood still may need to find out that it is dead."""
_CUT_REASONS = frozenset(
    {Reason.STOPPED, Reason.SUPERSEDED, Reason.DEADLINE_RUNNING, Reason.TIMED_OUT}
)
_LASTING_CUTS = frozenset({Cut.STOPPED, Cut.SUPERSEDED, Cut.DEADLINE, Cut.TIMED_OUT})


class Witness:
    """Everything that is known from outside, and what must hold of it while it happens."""

    def __init__(
        self, conductor: Conductor, wall: WallClock, reader: Reader, settings: Settings
    ) -> None:
        self._conductor = conductor
        self._reader = reader
        self._settings = settings
        self.nodes: list[Node] = []
        self.timetable = Timetable(reader, wall)
        self.machines = Machines(conductor, self._object)
        self.widths: dict[SessionKey, int] = {}
        """Sessions that allow more than one at once."""
        self.stored: dict[RunId, Run] = {}
        """Every run that was admitted or made by a merge, in the order in which it was stored."""
        self.turned_away: set[RunId] = set()
        self.acknowledged_ids: set[RunId] = set()
        self.outcomes: dict[RunId, Outcome] = {}
        self.unsure: dict[RunId, list[Outcome]] = {}
        """Outcomes of which nobody was told whether they were kept."""
        self.attempts: dict[RunId, list[Attempt]] = defaultdict(list)
        self.deliveries: dict[str, Delivery] = {}
        self.delivered_ids: set[str] = set()
        self.refusals: dict[str, int] = defaultdict(int)
        self.log: list[str] = []
        self._live: list[Attempt] = []
        self._plain: dict[SessionKey, list[RunId]] = defaultdict(list)
        self._by_key: dict[str, RunId] = {}
        self._cutting: set[RunId] = set()
        self._started: set[RunId] = set()
        """Runs with a stored start; one that is cut before its first step never begins."""
        self._newest: dict[SessionKey, Fence] = {}
        self._owner_of: dict[int, Node] = {}
        self._buried: set[int] = set()
        self._latest: dict[RunId, int] = {}
        """The number of each run's latest attempt, as long as nothing stored says that it is over."""
        self._adopting: dict[RunId, bool] = {}
        """Whether the latest stored start of a run goes on with a worker that is there (W-2)."""
        self._abandoned: set[tuple[Node, int]] = set()
        """Attempts that ignored their cancellation for the whole grace (S-3), by node and ticket."""

    def note(self, text: str) -> None:
        self.log.append(f"{self._conductor.now / 1_000_000:10.6f}  {text}")

    def _object(self, promise: Broken, text: str) -> None:
        self.note(f"!! {promise}: {text}")
        self._conductor.object_to(promise, text)

    # What was kept.

    def enlisted(self, node: "Node", number: int) -> None:
        self._owner_of[number] = node
        self.note(f"{node.name} is node {number}")

    def admitted(self, node: "Node", run: Run, admission: Admission) -> None:
        self.note(f"{node.name} admit {run.id} {run.session} {run.text!r}: {admission}")
        if isinstance(admission, TurnedAway):
            self.turned_away.add(run.id)
            self.stored.setdefault(run.id, run)
            self.outcomes.setdefault(run.id, admission.outcome)
        if not isinstance(admission, Granted | Elsewhere) or run.id in self.stored:
            return
        self.stored[run.id] = run
        for promise, text in self.timetable.admitted(run):
            self._object(promise, text)
        if is_plain(run):
            self._plain[run.session].append(run.id)
        for key in keys_of(run):
            earlier = self._by_key.get(key.text)
            if earlier is not None and not self._may_come_again(earlier, key):
                self._object(Broken.KEYS, f"{run.id} was taken under the key of {earlier}")
            self._by_key[key.text] = run.id
        if run.parent is not None and run.parent in self.outcomes:
            self._object(Broken.CHILDREN, f"{run.id} was taken, but {run.parent} had ended")
        for ancestor in run.ancestors:
            if ancestor in self._cutting or self._was_cut(ancestor):
                self._object(Broken.CHILDREN, f"{run.id} was taken, but {ancestor} was stopped")

    def _was_cut(self, run_id: RunId) -> bool:
        outcome = self.outcomes.get(run_id)
        return outcome is not None and outcome.reason in _CUT_REASONS

    def _may_come_again(self, earlier: RunId, key: Key) -> bool:
        """Whether no agent dealt with it. One that was orphaned may have acted: only its message comes again."""
        outcome = self.final(earlier)
        if outcome is None:
            return False
        freed = {Reason.DRAINING} if key.idempotency else {Reason.DRAINING, Reason.ORPHANED}
        return outcome.state is State.REJECTED or outcome.reason in freed

    def final(self, run_id: RunId) -> Outcome | None:
        """The outcome of a run, or of the one that took it over."""
        outcome = self.outcomes.get(run_id)
        while outcome is not None and outcome.into is not None:
            outcome = self.outcomes.get(RunId(outcome.into))
        return outcome

    def recorded(self, node: "Node", actions: Sequence[Action], recorded: Recorded) -> None:
        lost = {key for key, _ in recorded.lost}
        for action in actions:
            kept = session_of(action) not in lost
            self.note(f"{node.name} {'keeps' if kept else 'LOST'} {_brief(action)}")
            if kept:
                self._keep(node, action)

    def broken_off(self, actions: Sequence[Action]) -> None:
        """The database broke off in the middle: what of it was kept is seen only at the end."""
        for action in actions:
            if isinstance(action, Finish):
                self.unsure.setdefault(action.run.id, []).append(action.outcome)

    def _keep(self, node: "Node", action: Action) -> None:
        match action:
            case Finish(run, outcome):
                if outcome.reason is Reason.ORPHANED:
                    self._check_given_up(node, run)
                before = self.outcomes.setdefault(run.id, outcome)
                if before != outcome:
                    self._object(
                        Broken.ONE_OUTCOME, f"{run.id} ended {before}, then {outcome} ({node})"
                    )
                self._cutting.discard(run.id)
            case Start(run):
                if not action.adopts:
                    self._check_given_up(node, run, action.attempt)
                self._started.add(run.id)
                self._adopting[run.id] = action.adopts
                self._latest[run.id] = action.attempt
            case Merge(run):
                self.stored.setdefault(run.id, run)
            case CancelAttempt(run, _, cut) if cut in _LASTING_CUTS:
                self._cutting.add(run.id)
            case Enqueue(run):
                self._cutting.discard(run.id)
                if action.ended:
                    self._latest.pop(run.id, None)
            case Abandon(_, ticket):
                self._abandoned.add((node, ticket))
            case Deliver(delivery):
                self.deliveries[delivery.id] = delivery
            case _:
                pass

    def _check_given_up(self, node: "Node", run: Run, attempt: int | None = None) -> None:
        """A run is tried again, or ends as orphaned: then none of its workers may be there to be adopted."""
        for worker in self.machines.living(run.id):
            if worker.attempt == attempt or worker.machine.name != node.host:
                continue
            # One that was to go on, and whose node lost its lease before it could, is lost with that.
            if run.agent in node.runs and not self._adopting.get(run.id, False):
                self._object(
                    Broken.GIVEN_UP, f"{run.id} is taken over by {node}, and {worker} lives"
                )

    def worker_ended(self, node: "Node", worker: Worker) -> None:
        """Somebody ends a worker that is not his attempt's: nobody may want it any more."""
        run_id = worker.run.id
        self.note(f"{node.name} ends the {worker}")
        wanted = self._latest.get(run_id) == worker.attempt and run_id not in self.outcomes
        if wanted and run_id not in self._cutting:
            self._object(Broken.GIVEN_UP, f"{node} ends the {worker}, which could be adopted")

    def buried(self, by: "Node", number: int) -> None:
        """A node is declared dead only when its lease is over, and then its attempts were asked to end."""
        now = self._conductor.now
        node = self._owner_of.get(number)
        self.note(f"{by.name} buries {number}")
        self._buried.add(number)
        if node is None or node.number != number:
            return
        left = node.lease_from + self._settings.lease - now
        if left > 0:
            self._object(
                Broken.LIVE_NODE,
                f"node {number} was buried by {by} while its lease had {left / 1_000_000:.3f} s left",
            )
        if node.gone_at is not None or node.frozen or now <= node.thawed_at + THAW_GRACE:
            return
        for attempt in self._live:
            if attempt.node is node and attempt.number == number and attempt.cut_at is None:
                self._object(Broken.ZOMBIE, f"{attempt} goes on although its node is dead")

    # What was done.

    def begun(self, attempt: Attempt) -> None:
        run, node = attempt.run, attempt.node
        self.note(f"{node.name} begins {attempt} in {run.session}")
        self._check_owner(attempt)
        self._check_fence(attempt)
        self._check_room(attempt)
        self._check_order(attempt)
        if run.id in self.outcomes:
            self._object(Broken.ONE_OUTCOME, f"{attempt} begins, but ended {self.outcomes[run.id]}")
        most = run.max_attempts + run.retries
        if attempt.attempt > most:
            self._object(Broken.ATTEMPTS, f"{attempt} begins, of at most {most}")
        self.attempts[run.id].append(attempt)
        self._live.append(attempt)

    def _check_owner(self, attempt: Attempt) -> None:
        node, now = attempt.node, self._conductor.now
        owner, epoch = self._reader.owner_of(attempt.run.session)
        if owner != node.number or epoch != attempt.fence.epoch or owner in self._buried:
            self._object(
                Broken.OWNER,
                f"{attempt} begins under epoch {attempt.fence.epoch}; owner is {owner} under {epoch}",
            )
        if now >= node.lease_from + self._settings.lease:
            self._object(Broken.OWNER, f"{attempt} begins after the lease of {node}")

    def _check_fence(self, attempt: Attempt) -> None:
        session = attempt.run.session
        newest = self._newest.get(session)
        if newest is not None and attempt.fence <= newest:
            self._object(Broken.FENCE, f"{attempt} begins after fence {newest} in {session}")
        self._newest[session] = attempt.fence

    def _counts(self, attempt: Attempt) -> bool:
        """Whether it is live for the world: its node can still be its owner, and it was not left behind."""
        if attempt.node.gone_at is not None or attempt.number in self._buried:
            return False
        return (attempt.node, attempt.fence.ticket) not in self._abandoned

    def _check_room(self, attempt: Attempt) -> None:
        run = attempt.run
        live = [other for other in self._live if self._counts(other)]
        beside = [other for other in live if other.run.session == run.session]
        if len(beside) >= self.widths.get(run.session, 1):
            shown = ", ".join(map(str, beside))
            self._object(Broken.OVERLAP, f"{attempt} begins in {run.session} beside {shown}")
        lane = self._settings.lanes[run.lane]
        at_work = [other for other in live if other.run.lane == run.lane and not other.waits]
        here = sum(other.node is attempt.node for other in at_work)
        if attempt.adopted:
            # It goes on in any case: it never stopped. Nothing starts in its lane until there is room again.
            return
        if here >= lane.width and not self._borrows(attempt, live):
            self._object(Broken.LANE, f"{attempt} begins as one of {here + 1} in {run.lane}")
        if lane.cluster_limit is not None and len(at_work) >= lane.cluster_limit:
            shown = ", ".join(map(str, at_work))
            self._object(Broken.CLUSTER_LIMIT, f"{attempt} begins in {run.lane} beside {shown}")

    @staticmethod
    def _borrows(attempt: Attempt, live: Sequence[Attempt]) -> bool:
        return any(other.run.id == attempt.run.parent and other.waits for other in live)

    def _check_order(self, attempt: Attempt) -> None:
        run = attempt.run
        if not is_plain(run):
            return
        wide = self.widths.get(run.session, 1) > 1
        for earlier in self._plain[run.session]:
            if earlier == run.id:
                return
            if earlier not in self.outcomes and not (wide and earlier in self._started):
                self._object(
                    Broken.ORDER, f"{attempt} begins in {run.session} before {earlier} has ended"
                )

    def ended(self, attempt: Attempt) -> None:
        node, now = attempt.node, self._conductor.now
        how = "replied" if attempt.done else "cut" if attempt.cut_at is not None else "raised"
        self.note(f"{node.name} ends {attempt}: {how}")
        self._live.remove(attempt)
        dead = attempt.number in self._buried and now > node.thawed_at + THAW_GRACE
        if dead and attempt.cut_at is None:
            self._object(Broken.ZOMBIE, f"{attempt} went on long after its node was dead")

    def delivered(self, node: "Node", delivery: Delivery) -> None:
        self.note(f"{node.name} delivers {delivery.id}")
        if delivery.id not in self.deliveries:
            self._object(Broken.OUTBOX, f"{delivery.id} is delivered, but was never stored")
        if delivery.id.endswith(".reply"):
            outcome = self.outcomes.get(delivery.run_id)
            if outcome is None or outcome.text != delivery.text:
                self._object(Broken.OUTBOX, f"{delivery.id} says {delivery.text!r}, not {outcome}")
        self.delivered_ids.add(delivery.id)

    # What callers were told.

    def acknowledged(self, node: "Node", run_id: RunId) -> None:
        self.acknowledged_ids.add(run_id)
        if run_id not in self.stored:
            self._object(Broken.LOST, f"{run_id} was acknowledged by {node}, and is not stored")

    def refused(self, node: "Node", refusal: HeadwayError) -> None:
        self.note(f"{node.name} refuses: {refusal}")
        self.refusals[refusal.code] += 1

    @property
    def live(self) -> Sequence[Attempt]:
        return self._live


def is_plain(run: Run) -> bool:
    """Whether nothing but the order of arrival decides about its place."""
    if run.source is Source.TASK:
        return run.due_at is None
    queue = run.queue
    return (
        run.source is Source.MESSAGE
        and run.due_at is None
        and not run.merged_from
        and queue is not None
        and queue.mode in {Mode.QUEUE, Mode.FOLLOWUP}
        and queue.debounce == 0
    )


def _brief(action: Action) -> str:
    parts = []
    for name in action.__struct_fields__:
        value = getattr(action, name)
        if value is None or value == "" or name == "at":
            continue
        parts.append(value.id if isinstance(value, Run) else str(value))
    return f"{type(action).__name__}({', '.join(parts)})"
