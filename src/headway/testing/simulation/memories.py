"""What sessions must remember, by the simulator's own account (S-5, S-6, S-9)."""

import msgspec

from headway.model.run import Route, Run, SessionKey, SessionMemory
from headway.model.time import Instant
from headway.testing.simulation.ledger import BLANK

_OVERFLOW_LINES = 50


class Memories:
    """Options, cutoffs and the lines of dropped messages; nothing where a session is as new."""

    def __init__(self) -> None:
        self.kept: dict[SessionKey, SessionMemory] = {}

    def of(self, key: SessionKey) -> SessionMemory:
        return self.kept.get(key, BLANK)

    def keep(self, key: SessionKey, memory: SessionMemory) -> None:
        if memory == BLANK:
            self.kept.pop(key, None)
        else:
            self.kept[key] = memory

    def drop_line(self, run: Run) -> None:
        """One line of a dropped message is kept for the next turn."""
        memory = self.of(run.session)
        lines = (*memory.overflow, " ".join(run.text.split()))
        extra = max(0, len(lines) - _OVERFLOW_LINES)
        missed = memory.overflow_missed + extra
        self.keep(
            run.session,
            msgspec.structs.replace(memory, overflow=lines[extra:], overflow_missed=missed),
        )

    def take_lines(self, key: SessionKey) -> tuple[str, ...]:
        """The kept lines go with a turn."""
        memory = self.of(key)
        lines = memory.overflow
        if memory.overflow_missed:
            lines = (f"({memory.overflow_missed} older messages)", *lines)
        self.keep(key, msgspec.structs.replace(memory, overflow=(), overflow_missed=0))
        return lines

    def cut_off(
        self, key: SessionKey, at: Instant, message_id: str | None, route: Route | None
    ) -> None:
        """A `/stopall`, with its instant and, on its channel, its id. A cutoff never moves back."""
        memory = self.of(key)
        channel = route.channel if route is not None else ""
        cutoff_id, cutoff_channel = memory.cutoff_id, memory.cutoff_channel
        if message_id is not None:
            same = cutoff_id is not None and channel == cutoff_channel
            cutoff_id = max(int(message_id), cutoff_id or 0) if same else int(message_id)
            cutoff_channel = channel
        self.keep(
            key,
            msgspec.structs.replace(
                memory,
                cutoff_at=max(at, memory.cutoff_at or 0),
                cutoff_id=cutoff_id,
                cutoff_channel=cutoff_channel,
                overflow=(),
                overflow_missed=0,
            ),
        )

    def is_stale(self, run: Run) -> bool:
        """Whether the message was sent before the last `/stopall`."""
        memory = self.of(run.session)
        if memory.cutoff_at is None:
            return False
        if run.sent_at is not None:
            return run.sent_at < memory.cutoff_at
        channel = run.route.channel if run.route is not None else ""
        if memory.cutoff_id is None or run.message_id is None or channel != memory.cutoff_channel:
            return False
        return run.message_id.isdigit() and int(run.message_id) < memory.cutoff_id
