"""The store's part: who holds a session, under which epoch, and what it remembers."""

from dataclasses import dataclass

from headway.core.actions import Release, Remember
from headway.model.run import SessionKey, SessionMemory
from headway.testing.simulation.violation import Invariant, broken

BLANK = SessionMemory()


@dataclass(slots=True)
class Held:
    """A session that the simulated node decides for."""

    epoch: int
    seq: int = 0


class Ledger:
    """Grants sessions as a store does, and sees that they are given back."""

    def __init__(self) -> None:
        self.held: dict[SessionKey, Held] = {}
        self.memories: dict[SessionKey, SessionMemory] = {}
        self._epochs = 0

    def recall(self, key: SessionKey) -> Held:
        """Take the session, if it is not held already."""
        held = self.held.get(key)
        if held is None:
            self._epochs += 1
            held = self.held[key] = Held(self._epochs)
        return held

    def admit(self, key: SessionKey) -> Held:
        """The same, for one more run of it."""
        held = self.recall(key)
        held.seq += 1
        return held

    def remember(self, action: Remember) -> None:
        self.check_epoch(action.session, action.epoch)
        if action.memory == BLANK:
            self.memories.pop(action.session, None)
        else:
            self.memories[action.session] = action.memory

    def check_epoch(self, key: SessionKey, epoch: int) -> None:
        held = self.held.get(key)
        if held is None or held.epoch != epoch:
            known = "is not held" if held is None else f"is held under epoch {held.epoch}"
            broken(Invariant.MEMORY, f"a write names epoch {epoch} of session {key}, which {known}")

    def release(self, action: Release) -> None:
        self.check_epoch(action.session, action.epoch)
        held = self.held.pop(action.session)
        if held.seq != action.seen:
            broken(
                Invariant.MEMORY,
                f"session {action.session} is released at {action.seen}, but {held.seq} runs came",
            )
