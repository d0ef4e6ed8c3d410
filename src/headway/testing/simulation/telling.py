"""Tells a kernel one thing and has all that comes of it checked; keeps the log."""

from collections import deque
from collections.abc import Callable, Collection
from copy import deepcopy
from typing import TypeVar

from headway.core.actions import Abandon, Action, AskEstimate, Release, Start, Steer
from headway.core.kernel import Kernel
from headway.model.run import RunId, SessionKey
from headway.model.settings import Settings
from headway.model.time import SECOND, Instant
from headway.testing.simulation.ahead import Calls
from headway.testing.simulation.audit import audit, audit_end, follow_lending
from headway.testing.simulation.invariants import (
    check_ahead,
    check_instants,
    check_standing,
    check_why,
)
from headway.testing.simulation.ledger import Ledger
from headway.testing.simulation.mirror import Mirror
from headway.testing.simulation.violation import Invariant, Violation, broken
from headway.testing.simulation.witness import Witness

Answer = TypeVar("Answer")
Doing = tuple[object, ...]
"""What was done, for the log; made into text only if somebody reads it."""

BEGINNING: Instant = 1_000 * SECOND


class Teller:
    """A kernel, and everything that watches it."""

    def __init__(
        self, settings: Settings, *, kernel: type[Kernel] = Kernel, gated: bool = False
    ) -> None:
        self.kernel = kernel(settings, BEGINNING)
        self.kernel.set_gated(gated)
        self.mirror = Mirror(settings, BEGINNING)
        self.mirror.gated = gated
        self.ledger = Ledger()
        self.witness = Witness(self.mirror, self.ledger)
        self.submitted: list[RunId] = []
        self.lost: set[RunId] = set()
        """Runs that other nodes have taken over."""
        self.late: list[int] = []
        """Attempts that count no longer and have not returned."""
        self.asked: list[SessionKey] = []
        """Estimates that are owed an answer."""
        self.offers: list[tuple[int, RunId]] = []
        """Messages put into the inbox of an attempt, also those that were taken back since."""
        self.log: list[tuple[Instant, Doing, list[Action]]] = []
        self._twin: Kernel | None = None
        self._told: list[Action] = []
        self._called: list[int] = []
        self._calls = self._listen()

    @property
    def now(self) -> Instant:
        return self.mirror.now

    def pass_time(self, now: Instant) -> None:
        """Nothing happens but time."""
        self.witness.phase.since, self.mirror.now = self.mirror.now, now
        self.tell(lambda kernel: kernel.time_passed(now), ("time passes",), twin=False)
        check_instants(self.mirror)

    def tell(
        self,
        call: Callable[[Kernel], Answer],
        what: Doing,
        *,
        allowed: Collection[Answer] | None = None,
        invariant: Invariant = Invariant.VERDICT,
        twin: bool = True,
    ) -> Answer:
        """Call the kernel; its answer must be an allowed one, and each action is checked."""
        try:
            answer = call(self.kernel)
        except Exception as error:  # whatever it is, the kernel is at fault
            self.log.append((self.now, what, self.kernel.take_actions()))
            raise Violation(Invariant.CRASH, f"{type(error).__name__}: {error}") from error
        actions = self.kernel.take_actions()
        self.log.append((self.now, (*what, *self._called_up()), actions))
        if allowed is not None and answer not in allowed:
            doing = " ".join(map(str, what))
            broken(invariant, f"{doing}: answered {answer!r}, not one of {allowed}")
        self._heed(actions)
        follow_lending(self.kernel, self.mirror)
        if self._twin is not None:
            self._told += actions
            if twin:
                self._compare_twin(self._twin, call, answer)
        return answer

    def check(self, turn: int) -> None:
        """All that must hold between two steps; `turn` picks the run that is asked why it waits."""
        mirror, kernel = self.mirror, self.kernel
        self._twin = None
        audit(kernel, mirror)
        check_standing(mirror, self.ledger)
        check_ahead(mirror, kernel)
        waiting = [seen for seen in mirror.runs.values() if not seen.at_work]
        if waiting:
            seen = waiting[turn % len(waiting)]
            check_why(mirror, kernel, seen, whole=turn % 150 == 0)

    def check_end(self) -> None:
        """All is over: every caller was told, and nothing is left."""
        outcomes = self.witness.outcomes
        for run_id in self.submitted:
            told = outcomes.get(run_id)
            if told is None and run_id not in self.lost:
                broken(Invariant.LOST_CALLER, f"{run_id} has no outcome")
            into = None if told is None else told.into
            if into is not None and into not in outcomes and into not in self.lost:
                broken(Invariant.LOST_CALLER, f"{run_id} went into {into}, which has none")
        self.release_idle()
        audit_end(self.kernel)
        if self.ledger.held:
            broken(Invariant.MEMORY, f"sessions {list(self.ledger.held)} are still held")

    def release_idle(self) -> None:
        """All that was decided is stored: idle sessions are given back."""
        self.tell(lambda kernel: kernel.release_idle(), ("release idle",), twin=False)
        idle = [key for key in self.ledger.held if key not in self.mirror.sessions]
        idle += [session.key for session in self.mirror.sessions.values() if session.idle]
        if idle:
            broken(Invariant.MEMORY, f"idle sessions {idle} are still held")

    def copy_kernel(self) -> None:
        """A copy goes along for one step: it must decide alike, without a word of time before."""
        self._twin = deepcopy(self.kernel)
        self._twin.stage.called = []
        self._told = []
        self._called = []

    def _compare_twin(self, twin: Kernel, call: Callable[[Kernel], Answer], answer: Answer) -> None:
        self._twin = None
        if call(twin) != answer or twin.take_actions() != self._told:
            broken(Invariant.TWIN, f"a copy of the kernel decided otherwise than {self._told}")
        if twin.stage.called != self._called:
            broken(Invariant.TWIN, f"a copy of the kernel called up others than {self._called}")

    def _listen(self) -> Calls:
        """Hear of those that are called up next."""
        stage = self.kernel.stage
        stage.called = calls = Calls(stage)
        return calls

    def _called_up(self) -> Doing:
        """Who has just got a slot, for the log."""
        attempts = self.kernel.stage.attempts
        runs = [attempts[ticket].run.id for ticket in self._calls if ticket in attempts]
        return ("calls up", *runs) if runs else ()

    def _heed(self, actions: list[Action]) -> None:
        """All that was decided, in order. A start does not say whether there is a slot: the kernel does."""
        witness, calls = self.witness, self._calls
        self._calls = self._listen()
        self._called += calls
        started = {action.ticket for action in actions if isinstance(action, Start)}
        attempts = self.kernel.stage.attempts.items()
        waiting = {ticket for ticket, live in attempts if live.next_up}
        witness.phase.ahead = frozenset(started & {*waiting, *calls})
        left = deque(calls)
        for place, action in enumerate(actions):
            while left and calls.places[left[0]] <= place:
                witness.call_up(left.popleft())
            witness.heed(action)
            self._note(action)
        for ticket in left:
            witness.call_up(ticket)
        witness.close()

    def _note(self, action: Action) -> None:
        match action:
            case Abandon(ticket=ticket):
                self.late.append(ticket)
            case AskEstimate(session=session):
                self.asked.append(session)
            case Steer(message=message, into=into):
                self.offers.append((into, message.id))
            case Release(session=session):
                self.asked = [key for key in self.asked if key != session]
            case _:
                pass
