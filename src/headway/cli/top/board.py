"""All that the screen shows at one moment, and what can be read off it."""

from headway.model.time import Instant
from headway.model.value import Value
from headway.wire.nodes import NodeAnswer
from headway.wire.sessions import SessionSummary
from headway.wire.stats import StatsAnswer
from headway.wire.workers import WorkerAnswer


class Note(Value, frozen=True):
    """Something that has happened, for people."""

    at: Instant
    who: str
    what: str
    bad: bool = False
    same: str = ""
    """What makes it the same news as another one, however long each took."""
    count: int = 1
    """How many it stands for."""


class Board(Value, frozen=True):
    """A server at one moment."""

    at: Instant
    url: str
    stats: StatsAnswer | None = None
    """None: it has not answered yet."""
    sessions: tuple[SessionSummary, ...] = ()
    nodes: tuple[NodeAnswer, ...] = ()
    notes: tuple[Note, ...] = ()
    """The latest first."""
    per_second: float | None = None
    """How many runs have ended lately; None: nobody has listened."""
    trouble: str = ""
    """Why what is shown is old."""
    workers: tuple[WorkerAnswer, ...] = ()
    """Processes and panes that execute attempts, of all nodes."""

    @property
    def alone(self) -> int:
        """How many runs are a session of their own, such as most tasks."""
        return sum(_is_alone(session) for session in self.sessions)

    @property
    def conversations(self) -> tuple[SessionSummary, ...]:
        """The other sessions, those first in which most is to be done."""
        return tuple(
            sorted(
                (session for session in self.sessions if not _is_alone(session)),
                key=lambda session: (
                    -session.waiting_count - session.debouncing_count,
                    -session.running_count,
                    session.key,
                ),
            )
        )


def _is_alone(session: SessionSummary) -> bool:
    return session.key.startswith("run:")
