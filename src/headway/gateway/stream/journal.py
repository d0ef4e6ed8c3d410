"""The journal: the latest events of this node, numbered, for listeners that may lose their connection.

Each event is encoded when the first listener wants it, and once. Memory has two bounds: how many events, and how
much text they hold, because what an agent emits may be long.
"""

import asyncio
from collections.abc import Callable

import msgspec

from headway.gateway.stream.tails import HEEDED, Tails
from headway.model.events import AttemptFailed, Event, EventsMissed, OutputEmitted
from headway.model.telling import kind_of, told
from headway.model.time import Instant

_MOST_TEXT = 32 * 1024 * 1024
_LONGEST_NUMBER = 18
_LONG = {OutputEmitted, AttemptFailed}
_encode = msgspec.json.Encoder().encode


class Entry:
    """One event of the journal."""

    __slots__ = ("_boot", "_data", "event", "number")

    def __init__(self, boot: str, number: int, event: Event) -> None:
        self._boot = boot
        self._data: bytes | None = None
        self.number = number
        self.event = event

    @property
    def id(self) -> str:
        return f"{self._boot}-{self.number}"

    @property
    def name(self) -> str:
        return kind_of(type(self.event))

    @property
    def data(self) -> bytes:
        """The event as JSON, on one line."""
        if self._data is None:
            self._data = _encode(told(self.event))
        return self._data


class Start(msgspec.Struct, frozen=True):
    """Where a listener begins."""

    number: int
    missed: int | None = None
    """At least so many events before it cannot be told any more; None: there is no gap."""
    after: str = ""
    """What was seen before the gap, if there is one."""


class Journal:
    """Notes all that is published, and remembers the latest of it."""

    def __init__(self, boot: str, memory: int, now: Callable[[], Instant]) -> None:
        self.boot = boot
        self.left_out = 0
        """How many events listeners were told that they have missed."""
        self.first = 1
        """The number of the oldest event that is remembered."""
        self.head = 1
        """The number that the next event gets."""
        self.tails = Tails()
        self.closed = False
        self._now = now
        self._memory = memory
        self._ring: list[Event | Entry | None] = [None] * memory
        """Events become entries when a listener looks at them: most are looked at by nobody."""
        self._text = 0
        self._arrived = asyncio.Event()
        self._ears = {self._arrived}
        self._at_close: set[asyncio.Event] = {self._arrived}

    def note(self, event: Event) -> None:
        """For the bus: this happened. It happens a few times in the life of each run, so it is short."""
        number = self.head
        if number - self.first == self._memory:
            self._forget_one()
        self._ring[number % self._memory] = event
        self.head = number + 1
        kind = type(event)
        if kind in _LONG:
            self._text += _text(event)
            while self._text > _MOST_TEXT and self.first < number:
                self._forget_one()
        if kind in HEEDED:
            self.tails.note(event)
        for ear in self._ears:
            ear.set()

    def entry(self, number: int) -> Entry:
        """One that is remembered: from `first` to before `head`."""
        place = number % self._memory
        entry = self._ring[place]
        assert entry is not None
        if type(entry) is not Entry:
            assert isinstance(entry, Event)
            entry = self._ring[place] = Entry(self.boot, number, entry)
        return entry

    def id_before(self, number: int) -> str:
        """What whoever goes on at this number has seen last."""
        return f"{self.boot}-{number - 1}"

    def start(self, after: str | None) -> Start:
        """Where a listener goes on that has seen this id last; without one, at what comes next."""
        if after is None:
            return Start(self.head)
        boot, dash, digits = after.rpartition("-")
        ours = dash and boot == self.boot and digits.isascii() and digits.isdigit()
        if not ours or len(digits) > _LONGEST_NUMBER:
            # It listened to a node that has ended since, or elsewhere: all that this one remembers is new to it.
            return Start(self.first, self.first - 1, after)
        number = min(int(digits) + 1, self.head)
        if number < self.first:
            return Start(self.first, self.first - number, after)
        return Start(number)

    def latest(self, count: int, wanted: Callable[[Event], bool]) -> Start:
        """Where a listener begins that shall see so many of those that it wants from before."""
        number = self.head
        while count and number > self.first:
            number -= 1
            if wanted(self.entry(number).event):
                count -= 1
        return Start(number)

    def missed(self, start: Start) -> Entry:
        """What tells a listener that there is a gap before its start."""
        self.left_out += start.missed or 0
        event = EventsMissed(at=self._now(), count=start.missed or 0)
        return Entry(self.boot, start.number - 1, event)

    async def more(self, number: int) -> None:
        """Wait until there is an event of this number, or the journal is closed."""
        while self.head <= number and not self.closed:
            self._arrived.clear()
            await self._arrived.wait()

    def tell(self, ear: asyncio.Event, *, each: bool) -> None:
        """Set this when the journal closes and, if `each`, with each event."""
        self._at_close.add(ear)
        if each:
            self._ears.add(ear)
        else:
            self._ears.discard(ear)

    def tell_no_more(self, ear: asyncio.Event) -> None:
        self._ears.discard(ear)
        self._at_close.discard(ear)

    def close(self) -> None:
        """The node ends: every listener reads what there is and then ends, too."""
        self.closed = True
        for ear in self._at_close:
            ear.set()

    def _forget_one(self) -> None:
        place = self.first % self._memory
        gone, self._ring[place] = self._ring[place], None
        self.first += 1
        event = gone.event if type(gone) is Entry else gone
        if type(event) in _LONG:
            self._text -= _text(event)


def frame(entry: Entry) -> str:
    """An event as RPC tells it: {event, id, data}."""
    return f'{{"event":"{entry.name}","id":"{entry.id}","data":{entry.data.decode()}}}'


def _text(event: object) -> int:
    """How much text an event holds that may be long."""
    return len(getattr(event, "text", "")) + len(getattr(event, "trace", ""))
