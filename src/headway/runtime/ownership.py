"""Ownership: sessions that become this node's are put into its kernel, those it gives up or loses are taken out.

Who owns a session is the store's to say (D-4). Here is what follows from its answers: whether a run or an order
that was granted comes next in its session, or something else must be read before it.
"""

from collections.abc import Sequence

from headway.core.actions import Release
from headway.core.kernel import Kernel
from headway.model.places import Holding
from headway.model.run import AgentName, RunId, SessionKey
from headway.ports import Clock, Granted
from headway.runtime.attempts import Attempts
from headway.runtime.herald import Herald
from headway.runtime.scribe import Scribe


class Ownership:
    """Keeps the kernel's sessions in step with those that the store says are this node's."""

    def __init__(
        self, kernel: Kernel, clock: Clock, attempts: Attempts, scribe: Scribe, herald: Herald
    ) -> None:
        self._kernel = kernel
        self._clock = clock
        self._attempts = attempts
        self._scribe = scribe
        self._herald = herald
        self.asking: dict[RunId, bool] = {}
        """Runs on their way into the store, and whether the kernel has met them already by another way."""

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
        self._kernel.restore(holding, self._clock.now())
        for place in holding.places:
            if place.run.id in self.asking:
                self.asking[place.run.id] = True
        self._scribe.wake()

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
