"""Who this store object acts for, and what its requests tell others."""

from headway.model.run import SessionKey
from headway.model.settings import Limits, Settings
from headway.model.time import Instant
from headway.ports import Hint
from headway.store.sqlite.board import EVERYONE


class Node:
    """The incarnation that a store object belongs to, as its requests see it."""

    def __init__(self, settings: Settings) -> None:
        self.id = 0
        """0 until it is enlisted: such a process adds and reads, and never owns anything (N-21)."""
        self.host = ""
        """The machine that it runs on (W-2)."""
        self.settings = settings
        self.limits: Limits = settings.limits
        self.alone = True
        """Whether only this process can own sessions: then nobody else waits for what happens here."""
        self.most_waiting: dict[str, int] = {}
        """By agent a number of waiting tasks that is not below the true one, while nobody else writes."""
        self.most_in_all = 0
        self.counted_at: object = None
        self.unreadable: dict[SessionKey, Instant] = {}
        """Sessions with something of a newer version in them, and until when they are left alone (N-20)."""
        self._hints: set[tuple[int, Hint]] = set()

    def hint(self, to: int | None, hint: Hint) -> None:
        """Tell another node, once the transaction is kept."""
        if to is not None and to != self.id:
            self._hints.add((to, hint))

    def hint_all(self, hint: Hint) -> None:
        """Tell all others."""
        self._hints.add((EVERYONE, hint))

    def hint_me(self, hint: Hint) -> None:
        """What this node did for another reason is news to its engine too."""
        self._hints.add((self.id, hint))

    def hints(self) -> frozenset[tuple[int, Hint]]:
        """What is to be told so far."""
        return frozenset(self._hints)

    def tell_only(self, hints: frozenset[tuple[int, Hint]]) -> None:
        """What came since then was not kept."""
        self._hints = set(hints)

    def take_hints(self) -> set[tuple[int, Hint]]:
        hints, self._hints = self._hints, set()
        return hints
