"""One session's queue: its order, its width, its cap and what it remembers (S)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from headway.core.debounce import Buffer, BufferKey
from headway.core.live import LiveRun
from headway.core.moving import Moving
from headway.model.run import QueueOptions, Route, Run, RunId, SessionKey, SessionMemory
from headway.model.settings import QueueSettings
from headway.model.time import Instant
from headway.model.words import Source, Word

if TYPE_CHECKING:
    from headway.core.alarms import Alarm
    from headway.core.bells import Bell

ORDER_STEP = 1_024
"""How far apart the places of two runs are: so many heartbeats can step in between."""
OVERFLOW_LINES = 50
OVERFLOW_LINE_LENGTH = 160
BLANK = SessionMemory()

# Python 3.11 looks members of an enum up slowly; those of the hot path are looked up once.
_MESSAGE = Source.MESSAGE
_HEARTBEAT = Source.HEARTBEAT


class Estimate(Word):
    """What is known of a session's token estimate (S-2)."""

    UNKNOWN = "unknown"
    ASKED = "asked"
    ROOMY = "roomy"
    TIGHT = "tight"


class SessionQueue(Moving, eq=False):
    """The runs of one session that have not ended. It exists only while there are any."""

    key: SessionKey
    epoch: int
    memory: SessionMemory
    seen: int = 0
    """The store's number of the latest run or order that came here."""
    turns: int = 0
    """How many times it was decided where one of its runs stands."""
    waiting: list[LiveRun] = []
    """In the order in which they will start."""
    running: list[LiveRun] = []
    """By their start; also those that wait for a slot, or whose cancellation has not returned."""
    had_heartbeats: bool = False
    later: int = 0
    """Runs that are not due yet; they take their place when they are."""
    buffers: dict[BufferKey, Buffer] | None = None
    offspring: list[LiveRun] | None = None
    """Live sub-runs, at any depth, of this session's runs: a stop reaches them."""
    posted: LiveRun | None = None
    """The waiting run that stands in its lane just now."""
    quiet_until: Instant = 0
    quiet_alarm: "Alarm[Bell] | None" = None
    estimate: Estimate = Estimate.UNKNOWN
    returning: set[RunId] | None = None
    """Set while the session is taken over: runs that were with a turn, and not in line, when the rest came."""

    @property
    def is_idle(self) -> bool:
        return not (self.waiting or self.running or self.later or self.buffers or self.offspring)

    @property
    def is_at_work(self) -> bool:
        """Whether a turn runs, or ran when the owner was lost that the session is taken over from."""
        return bool(self.running) or (self.returning is not None and bool(self._were_running))

    @property
    def buffered(self) -> int:
        return sum(len(buffer.messages) for buffer in (self.buffers or {}).values())

    @property
    def only_heartbeats_run(self) -> bool:
        running = self.running if self.returning is None else self._were_running
        return bool(running) and all(live.run.source is _HEARTBEAT for live in running)

    @property
    def _were_running(self) -> list[LiveRun]:
        """What the lost owner was at: a message that comes after is judged as it would have been there."""
        return [*self.running, *(live for live in self.waiting if live.begun)]

    def busy_for(self, width: int) -> bool:
        """Whether a message that allows `width` at once must wait for others; it waits for no heartbeat."""
        if self.returning is None and not self.had_heartbeats:
            return bool(self.waiting) or len(self.running) >= self.width_with(width)
        returns = self.returning is not None
        for live in self.waiting:
            if live.run.source is not _HEARTBEAT and not (returns and live.begun):
                return True
        runs = self._were_running if returns else self.running
        running = [live for live in runs if live.run.source is not _HEARTBEAT]
        return len(running) >= min([width, *(live.width for live in running)])

    def width_with(self, width: int) -> int:
        """How many may go at once: a run that wants to be alone is not joined by one that does not mind."""
        for live in self.running:
            width = min(width, live.width)
        return width

    def free_slot(self) -> int:
        """The lowest slot that none of the running attempts holds."""
        taken = {live.slot for live in self.running}
        slot = 0
        while slot in taken:
            slot += 1
        return slot

    def join(self, live: LiveRun) -> list[LiveRun]:
        """Take a place at the end; heartbeats step behind a message (S-1, F-4). Answers those that did."""
        live.place = live.order
        waiting = self.waiting
        source = live.run.source
        if source is _HEARTBEAT:
            self.had_heartbeats = True
        waiting.append(live)
        if not self.had_heartbeats or source is not _MESSAGE:
            return []
        stepping_back = [other for other in waiting if other.run.source is _HEARTBEAT]
        for step, heartbeat in enumerate(stepping_back, 1):
            waiting.remove(heartbeat)
            heartbeat.place = live.place + step
        waiting += stepping_back
        return stepping_back

    def join_first(self, live: LiveRun) -> None:
        """Take the place in front of all that wait: for the message of an interrupt."""
        live.place = self.waiting[0].place - 1 if self.waiting else live.order
        self.waiting.insert(0, live)

    def rejoin(self, live: LiveRun) -> None:
        """Back to its place after a cut attempt (R-5); a heartbeat steps behind messages even then."""
        waiting = self.waiting
        if live.run.source is _HEARTBEAT:
            for other in waiting:
                if other.run.source is _MESSAGE and other.place > live.place:
                    live.place = other.place
                    live.after, live.turn = other.after, other.turn
        place = _line_place(live)
        index = 0
        for other in waiting:
            if _line_place(other) > place:
                break
            index += 1
        waiting.insert(index, live)

    def is_full(self, cap: int) -> bool:
        """Whether as many messages wait as may: those that were never started count, nothing else (S-6)."""
        if len(self.waiting) < cap:
            return False
        return sum(1 for live in self.waiting if self._counts(live)) >= cap

    def oldest_message(self) -> LiveRun | None:
        """The message that gives way when the queue is full; one that was started never does."""
        for live in self.waiting:
            if self._counts(live):
                return live
        return None

    def _counts(self, live: LiveRun) -> bool:
        if live.run.source is not _MESSAGE or live.begun:
            return False
        return self.returning is None or live.run.id not in self.returning

    def keep_line(self, run: Run) -> None:
        """Remember one line of a dropped message, for the note in front of the next turn (S-6)."""
        line = " ".join(run.text.split())
        if len(line) > OVERFLOW_LINE_LENGTH:
            line = f"{line[: OVERFLOW_LINE_LENGTH - 1]}…"
        lines = (*self.memory.overflow, line)
        extra = max(0, len(lines) - OVERFLOW_LINES)
        self.memory = msgspec.structs.replace(
            self.memory,
            overflow=lines[extra:],
            overflow_missed=self.memory.overflow_missed + extra,
        )

    def take_lines(self) -> tuple[str, ...]:
        """The remembered lines, forgotten here as they go with a turn."""
        memory = self.memory
        lines = memory.overflow
        if memory.overflow_missed:
            lines = (f"({memory.overflow_missed} older messages)", *lines)
        self.memory = msgspec.structs.replace(memory, overflow=(), overflow_missed=0)
        return lines

    def cut_off(self, at: Instant, message_id: str | None, route: Route | None) -> None:
        """A `/stopall`: what was sent before it is stale from now on. A later cutoff never moves back."""
        memory = self.memory
        channel = route.channel if route else ""
        number = message_number(message_id)
        if number is None or (memory.cutoff_id is not None and channel == memory.cutoff_channel):
            kept = memory.cutoff_id
            number = kept if number is None or kept is None else max(kept, number)
            channel = memory.cutoff_channel
        self.memory = msgspec.structs.replace(
            memory,
            cutoff_at=at if memory.cutoff_at is None else max(at, memory.cutoff_at),
            cutoff_id=number,
            cutoff_channel=channel,
            overflow=(),
            overflow_missed=0,
        )

    def is_stale(self, run: Run) -> bool:
        """Whether the message was sent before the last `/stopall` (S-9)."""
        memory = self.memory
        if memory.cutoff_at is None:
            return False
        if run.sent_at is not None:
            return run.sent_at < memory.cutoff_at
        number = message_number(run.message_id)
        channel = run.route.channel if run.route else ""
        if number is None or memory.cutoff_id is None or channel != memory.cutoff_channel:
            return False
        return number < memory.cutoff_id


def _line_place(live: LiveRun) -> tuple[int, bool, int]:
    """A heartbeat that comes back behind a message shares its place: it comes after it."""
    return live.place, live.run.source is _HEARTBEAT, live.order


def message_number(message_id: str | None) -> int | None:
    """A message id as a number, where it is one ("9" is before "100")."""
    if message_id is not None and message_id.isascii() and message_id.isdigit():
        return int(message_id)
    return None


class QueueRules:
    """Resolves a message's queue settings: message > session > channel > global (S-5).

    It changes only with the node's settings, so copies of a kernel share it.
    """

    def __deepcopy__(self, memo: object) -> "QueueRules":
        return self

    def __init__(self, settings: QueueSettings, channels: Mapping[str, QueueOptions]) -> None:
        self.go_by(settings, channels)

    def go_by(self, settings: QueueSettings, channels: Mapping[str, QueueOptions]) -> None:
        """Go by these from now on. What waits keeps what was resolved for it."""
        self._channels = channels
        self._from_channel = settings
        self.from_library = msgspec.structs.replace(settings, debounce=0)

    def resolve(
        self, message: QueueOptions | None, session: QueueOptions | None, route: Route | None
    ) -> QueueSettings:
        resolved = self.from_library
        if route is not None:
            resolved = self._from_channel
            channel = self._channels.get(route.channel)
            if channel is not None:
                resolved = overlaid(resolved, channel)
        if session is not None:
            resolved = overlaid(resolved, session)
        if message is not None:
            resolved = overlaid(resolved, message)
        return resolved


def with_options(options: QueueOptions, change: QueueOptions) -> QueueOptions:
    """The options with everything that the change says."""
    said = {
        name: value for name, value in msgspec.structs.asdict(change).items() if value is not None
    }
    return msgspec.structs.replace(options, **said)


def overlaid(settings: QueueSettings, options: QueueOptions) -> QueueSettings:
    """The settings with everything that the options say."""
    said = {
        name: value for name, value in msgspec.structs.asdict(options).items() if value is not None
    }
    return msgspec.structs.replace(settings, **said) if said else settings
