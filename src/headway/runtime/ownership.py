"""Ownership: sessions that become this node's are put into its kernel, those it gives up or loses are taken out.

Who owns a session is the store's to say (D-4). Here is what follows from its answers: whether a run or an order
that was granted comes next in its session, or something else must be read before it. And whether a worker of this
machine that outlived its node goes on with its attempt (W-2): only who has the session may say so.
"""

from collections.abc import Callable, Sequence

import msgspec

from headway.core.actions import Release
from headway.core.kernel import Kernel
from headway.model.places import Holding, Place
from headway.model.run import AgentName, RunId, SessionKey
from headway.ports import Clock, Granted
from headway.runtime.attempts import Attempts
from headway.runtime.herald import Herald
from headway.runtime.replies import describe
from headway.runtime.scribe import Scribe
from headway.turn import KeepsWorkers


class Ownership:
    """Keeps the kernel's sessions in step with those that the store says are this node's."""

    def __init__(  # noqa: PLR0917 - all that a session that comes or goes touches, said once
        self,
        kernel: Kernel,
        clock: Clock,
        attempts: Attempts,
        scribe: Scribe,
        herald: Herald,
        host: str = "",
    ) -> None:
        self._kernel = kernel
        self._clock = clock
        self._attempts = attempts
        self._scribe = scribe
        self._herald = herald
        self._host = host
        """The machine that this node runs on; without a name nothing is adopted."""
        self.asking: dict[RunId, bool] = {}
        """Runs on their way into the store, and whether the kernel has met them already by another way."""
        self.scan_soon: Callable[[], None] = _nothing
        """Look for workers of this machine that nobody wants any more: there may be some."""

    def is_next(self, key: SessionKey, granted: Granted) -> bool:
        """Whether nothing has come in the session that this node has not seen."""
        session = self._kernel.stage.sessions.get(key)
        if session is not None:
            return granted.epoch == session.epoch and granted.seq == session.seen + 1
        epoch, seen = self._scribe.releasing.get(key, (0, 0))
        return granted.fresh or (granted.epoch == epoch and seen > 0 and granted.seq == seen + 1)

    def take_in(self, holding: Holding) -> None:
        """A session is ours with what is in it, or something new came in one of ours."""
        self._scribe.kept.pop(holding.session, None)
        if any(place.orphaned and place.host for place in holding.places):
            holding = self._with_workers(holding)
        self._kernel.restore(holding, self._clock.now())
        for place in holding.places:
            if place.run.id in self.asking:
                self.asking[place.run.id] = True
            if place.adopted:
                self._herald.adopted(place.run, place.attempt, place.host)
        self._scribe.wake()

    def _with_workers(self, holding: Holding) -> Holding:
        """Workers of this machine that outlived their node are found here, or they are gone (W-2).

        Not in a session that is here already: what runs in it was started or adopted before.
        """
        known = self._kernel.stage.sessions.get(holding.session)
        if known is not None and known.epoch >= holding.epoch:
            return holding
        places = tuple(self._with_worker(place) for place in holding.places)
        self.scan_soon()
        return msgspec.structs.replace(holding, places=places)

    def _with_worker(self, place: Place) -> Place:
        """One that this very process has lost meanwhile is being ended by it, and not found again (D-3)."""
        run_id = place.run.id
        if not place.orphaned or not place.host or place.host != self._host:
            return place
        runner = self._attempts.runners.get(place.run.agent)
        if runner is None or self._attempts.is_at(run_id) or not isinstance(runner, KeepsWorkers):
            return place
        try:
            found = runner.has(run_id, place.attempt)
        except Exception as error:  # noqa: BLE001 - the machine may refuse it, and the node goes on
            self._herald.callback_failed(f"finding the worker of run {run_id}", describe(error))
            return place
        return msgspec.structs.replace(place, adopted=True) if found else place

    def put_back(self, sessions: Sequence[SessionKey]) -> None:
        """What could not start here may start elsewhere sooner."""
        before = len(self._kernel.stage.actions)
        self._kernel.put_back(sessions, self._clock.now())
        released = self._kernel.stage.actions[before:]
        for action in released:
            if isinstance(action, Release):
                self._scribe.releases(action)
        if released:
            self._scribe.wake()

    def lose(self, lost: Sequence[tuple[SessionKey, int]]) -> None:
        """Other nodes decide for these sessions now: nothing of them goes on here (D-4)."""
        self._herald.sessions_lost(len(lost))
        self._attempts.cancel_lost(lost)
        self._kernel.lose(lost, self._clock.now())

    def lose_all(self) -> None:
        """Others own everything that was ours: forget it without any outcome (D-4)."""
        sessions = self._kernel.stage.sessions
        self._attempts.cancel_all()
        self.lose(tuple((key, session.epoch) for key, session in sessions.items()))
        self._scribe.forget()

    def fair_agents(self) -> list[AgentName]:
        """The agents that run here, as the floor would serve them: what is claimed goes by it (F-2)."""
        agent = self._kernel.stage.floor.agent
        return sorted(self._attempts.runners, key=lambda name: agent(name).place)


def _nothing() -> None:
    """Nobody looks for workers here."""
