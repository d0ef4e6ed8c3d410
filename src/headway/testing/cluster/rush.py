"""A history with a rush: many short runs at once, on nodes that store starts ahead of their slots.

All else that happens is drawn as in the history of the same seed. Nodes of such a history start ahead whatever
their pace is, so that runs which wait for their slot meet every fault; most would never do it by themselves.
"""

from functools import partial
from random import Random

from headway.core.request import SubmitOptions
from headway.model.time import MILLISECOND, SECOND
from headway.testing.cluster.history import History

_MOST_AHEAD = 4
_SPANS = (MILLISECOND, MILLISECOND, 5 * MILLISECOND, 20 * MILLISECOND, 400 * MILLISECOND)
"""How long a run of a rush takes; those that wait behind the longest are called back."""

_WIDE = 0.2
"""How much of it is for the session that may have several runs at once: those are never started ahead."""


class Rush(History):
    """One seed's history, and what comes in a rush besides."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._of_rush = Random(f"{seed} rush")
        self._rushed = 0
        self._chats = self._of_rush.randint(2, 12)
        self.cluster.most_ahead = _MOST_AHEAD

    def play(self) -> None:
        random = self._of_rush
        for _ in range(random.randint(1, 6)):
            at = random.randrange(2 * SECOND, self.span)
            self.cluster.conductor.plan(at, partial(self._rush, random.randint(5, 40)))
        super().play()

    def _rush(self, count: int) -> None:
        random = self._of_rush
        up = self.cluster.up
        for _ in range(count if up else 0):
            self._rushed += 1
            text = f"r{self._rushed}"
            self.cluster.habits.spans[text] = random.choice(_SPANS)
            wide = random.random() < _WIDE
            options = SubmitOptions(
                session="wide" if wide else f"chat{random.randrange(self._chats)}",
                max_concurrent=3 if wide else 1,
                debounce=0,
                cap=1_000,
                max_attempts=random.choice((2, 3, 5)),
            )
            self._ask(random.choice(up), "alpha", text, options)
