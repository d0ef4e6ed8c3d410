"""A listener: a place in the journal, and which of its events are wanted there."""

from collections.abc import Callable

from headway.gateway.stream.journal import Entry, Journal, Start
from headway.model.events import Event


class Listener:
    """Reads the journal at its own pace, but not too far behind."""

    def __init__(
        self, journal: Journal, start: Start, backlog: int, wanted: Callable[[Event], bool]
    ) -> None:
        self._journal = journal
        self._backlog = backlog
        self._wanted = wanted
        self._gap = journal.missed(start) if start.missed is not None else None
        self._before_gap = start.after
        self._since = journal.head
        """What was published before it came is read at its own pace: only what came later counts as a backlog."""
        self.number = start.number
        """The next event to look at."""

    @property
    def behind(self) -> bool:
        """Whether it is too slow: too much waits for it, or what it should read next is forgotten."""
        journal = self._journal
        return (
            journal.head - max(self.number, self._since) > self._backlog
            or self.number < journal.first
        )

    @property
    def seen(self) -> str:
        """The id with which it can go on later, also after events that it did not want.

        As long as a gap was not told of, this is before the gap: who is cut off now must be told the next time.
        """
        return self._before_gap if self._gap is not None else self._journal.id_before(self.number)

    def take(self, most: int) -> list[Entry]:
        """The next events that it wants, at most about so many bytes of them; ask `behind` first."""
        taken: list[Entry] = []
        if self._gap is not None:
            taken.append(self._gap)
            self._gap = None
        journal, wanted = self._journal, self._wanted
        while self.number < journal.head and most > 0:
            entry = journal.entry(self.number)
            self.number += 1
            if wanted(entry.event):
                taken.append(entry)
                most -= len(entry.data)
        return taken

    async def more(self) -> None:
        """Wait until there is something to look at, or the journal is closed."""
        if self._gap is None:
            await self._journal.more(self.number)

    @property
    def over(self) -> bool:
        """Whether nothing will come any more."""
        return self._journal.closed and self.number >= self._journal.head
