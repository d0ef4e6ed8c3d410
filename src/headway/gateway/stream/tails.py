"""The tails of what running runs have emitted, so that who begins to watch one late sees the latest of it."""

from collections import deque

from headway.model.events import (
    AttemptCancelled,
    Event,
    OutputEmitted,
    RunFinished,
    RunQueuedAgain,
    RunStarted,
)
from headway.model.run import RunId
from headway.model.words import Cut

HEEDED: frozenset[type[Event]] = frozenset(
    {AttemptCancelled, OutputEmitted, RunFinished, RunQueuedAgain, RunStarted}
)

TAIL = 64 * 1024
"""How many characters of one run are kept."""
_ALL_TAILS = 16 * 1024 * 1024
_PIECE = 64
"""What a piece weighs beside its text: many short pieces are no way around the bound."""


class Tail:
    """The latest that one attempt has emitted."""

    __slots__ = ("cut", "pieces", "size")

    def __init__(self) -> None:
        self.pieces: deque[str] = deque()
        self.size = 0
        self.cut = False
        """Whether something before the first piece was left out."""

    def add(self, text: str) -> int:
        """Keep a piece; answers by how much this has grown."""
        before = self.size
        if len(text) > TAIL:
            text = text[-TAIL:]
            self.cut = True
        self.pieces.append(text)
        self.size += len(text) + _PIECE
        while self.size > TAIL + _PIECE:
            self.size -= len(self.pieces.popleft()) + _PIECE
            self.cut = True
        return self.size - before


class Tails:
    """Which attempts run, and what each has emitted."""

    def __init__(self) -> None:
        self.running: dict[RunId, int] = {}
        """The attempt that each run is at."""
        self._tails: dict[RunId, Tail] = {}
        self._size = 0

    def note(self, event: Event) -> None:
        """For events of the kinds that are heeded. What is lost to another node ends here without an outcome."""
        match event:
            case RunStarted():
                self._end(event.run_id)
                self.running[event.run_id] = event.attempt
            case OutputEmitted():
                self._emitted(event)
            case RunFinished() | RunQueuedAgain() | AttemptCancelled(cut=Cut.LOST):
                self._end(event.run_id)
            case _:
                pass

    def of(self, run_id: RunId) -> Tail:
        """What the run's present attempt has emitted lately; empty if it does not run here."""
        return self._tails.get(run_id) or Tail()

    def _emitted(self, event: OutputEmitted) -> None:
        if event.run_id not in self.running:
            return
        tail = self._tails.get(event.run_id)
        if tail is None:
            tail = self._tails[event.run_id] = Tail()
        self._size += tail.add(event.text)
        while self._size > _ALL_TAILS:
            self._forget_oldest()

    def _end(self, run_id: RunId) -> None:
        self.running.pop(run_id, None)
        tail = self._tails.pop(run_id, None)
        if tail is not None:
            self._size -= tail.size

    def _forget_oldest(self) -> None:
        """The run that began to emit first loses what is kept of it; it goes on with a new tail."""
        oldest = next(iter(self._tails))
        tail = self._tails.pop(oldest)
        self._size -= tail.size
        if oldest in self.running:
            fresh = self._tails[oldest] = Tail()
            fresh.cut = True
