"""This node among the others: what it does about the things that its store and its membership tell of them.

A hint says where to look, an answer of the store that sessions are lost or were kept, the membership how the
lease stands. Each is passed on to those parts of the node whose business it is.
"""

from collections.abc import Sequence

from headway.core.actions import Action
from headway.core.kernel import Kernel
from headway.ports import Clock, Hint, Recorded, Store
from headway.runtime.attempts import Attempts
from headway.runtime.claims import Claims
from headway.runtime.courier import Courier
from headway.runtime.follower import Follower
from headway.runtime.herald import Herald
from headway.runtime.ownership import Ownership
from headway.runtime.permits import Permits
from headway.runtime.scribe import Scribe, without_lost
from headway.runtime.timekeeper import Timekeeper


class ThisNode:
    """Hears of the other nodes and of its own lease, and sets the parts of the node to work."""

    def __init__(
        self,
        kernel: Kernel,
        store: Store,
        clock: Clock,
        *,
        attempts: Attempts,
        scribe: Scribe,
        ownership: Ownership,
        claims: Claims,
        follower: Follower,
        permits: Permits,
        courier: Courier,
        timekeeper: Timekeeper,
        herald: Herald,
    ) -> None:
        self._kernel = kernel
        self._durable = store.durable
        self._clock = clock
        self._attempts = attempts
        self._scribe = scribe
        self._ownership = ownership
        self._claims = claims
        self._follower = follower
        self._permits = permits
        self._courier = courier
        self._timekeeper = timekeeper
        self._herald = herald

    # What the store tells.

    def hear(self, hint: Hint) -> None:
        self._claims.hear(hint)
        if hint in {Hint.ENDED, Hint.ALL}:
            self._follower.look()
            self._courier.look()
        if hint in {Hint.SLOTS, Hint.ALL}:
            self._permits.look()
        if hint in {Hint.JOBS, Hint.ALL}:
            self._timekeeper.look()
        if hint is Hint.JOBS:
            self._herald.jobs_changed()

    def poll(self) -> None:
        """A hint may have been lost: look without one."""
        self._follower.look()
        self._permits.look()
        self._courier.look()

    def recorded(self, recorded: Recorded, actions: Sequence[Action]) -> Sequence[Action]:
        """What the store says besides having kept a batch. Answers what is to be carried out."""
        if recorded.kept:
            self._claims.look_at(recorded.kept)
        if not recorded.lost:
            return actions
        self._ownership.lose(recorded.lost)
        self._claims.in_doubt()
        self._follower.look()
        return without_lost(actions, frozenset(recorded.lost))

    def rested(self) -> None:
        """All is stored and carried out for now."""
        if self._durable:
            self._claims.room_made()
        self._permits.look_if_limited()

    # What the membership tells.

    @property
    def only_asks(self) -> bool:
        """Whether no agent runs here, so that nothing need be owned."""
        return self._durable and not self._attempts.runners

    def fence(self) -> None:
        """The lease is about to end: stop all attempts, start nothing (D-3)."""
        self._claims.open = False
        self._kernel.suspend(self._clock.now())
        self._attempts.cancel_all()
        self._scribe.wake()

    def unfence(self) -> None:
        self._ownership.scan_soon()
        self._kernel.resume(self._clock.now())
        self._claims.open = not self._kernel.stage.draining
        self._claims.hear(Hint.ALL)
        self._scribe.wake()

    async def die(self) -> None:
        """This incarnation owns nothing any more, and knows nothing of what it owned."""
        self._ownership.lose_all()
        self._claims.forget()
        self._permits.lose_all()
        self._follower.look()

    def widow(self) -> None:
        self._claims.hear(Hint.WORK)
