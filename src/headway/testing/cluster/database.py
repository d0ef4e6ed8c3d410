"""The database that simulated nodes share, and a reader that looks into it past all stores."""

import sqlite3
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from headway.model.outcome import Outcome
from headway.model.run import RunId, SessionKey
from headway.model.settings import Settings
from headway.model.words import State
from headway.ports import Clock
from headway.store.codec import decode_outcome
from headway.store.sqlite import SqliteStore


class Reader:
    """Reads what the nodes have written. It never writes."""

    def __init__(self, path: str) -> None:
        self._connection = sqlite3.connect(path, uri=path.startswith("file:"), isolation_level=None)

    def close(self) -> None:
        self._connection.close()

    def _rows(self, text: str, *values: str | int) -> list[tuple[object, ...]]:
        return self._connection.execute(text, values).fetchall()

    def owner_of(self, session: SessionKey) -> tuple[object, object]:
        rows = self._rows("SELECT owner, epoch FROM sessions WHERE key = ?", session)
        return (rows[0][0], rows[0][1]) if rows else (None, None)

    def endings(self) -> dict[RunId, tuple[State | None, Outcome | None, int]]:
        """Every run that is stored: its final state and outcome, if it has them, and its latest attempt."""
        found: dict[RunId, tuple[State | None, Outcome | None, int]] = {}
        for run_id, state, outcome, attempt in self._rows(
            "SELECT id, state, outcome, attempt FROM runs"
        ):
            assert isinstance(attempt, int)
            found[RunId(str(run_id))] = (
                None if state is None else State(str(state)),
                None if outcome is None else decode_outcome(str(outcome)),
                attempt,
            )
        return found

    def unfinished(self) -> Sequence[str]:
        rows = self._rows(
            "SELECT runs.id, queue.session, queue.state, queue.ready_at, sessions.owner FROM queue"
            " JOIN runs USING (number) LEFT JOIN sessions ON sessions.key = queue.session"
        )
        return [f"{row[0]} in {row[1]}: {row[2]}, ready {row[3]}, owner {row[4]}" for row in rows]

    def unanswered(self) -> Sequence[str]:
        rows = self._rows("SELECT id, session, command FROM orders WHERE answer IS NULL")
        return [" ".join(map(str, row)) for row in rows]

    def undelivered(self) -> Sequence[str]:
        return [str(row[0]) for row in self._rows("SELECT id FROM outbox")]

    def is_settled(self) -> bool:
        """Whether nothing is left to be done."""
        return not self._rows(
            "SELECT 1 FROM queue UNION ALL SELECT 1 FROM orders WHERE answer IS NULL"
            " UNION ALL SELECT 1 FROM outbox LIMIT 1"
        )

    def left_over(self) -> Sequence[str]:
        """What must not be there once every node has left in good order."""
        questions = {
            "session": "SELECT key, owner FROM sessions WHERE owner IS NOT NULL OR memory IS NULL",
            "queue": "SELECT number, session FROM queue",
            "live attempt": "SELECT number, session FROM attempts",
            "offspring": "SELECT ancestor, number FROM offspring",
            "slot": "SELECT lane, slot, node FROM slots",
            "wanted slot": "SELECT lane, node FROM slot_wants",
            "node": "SELECT id, name FROM nodes WHERE ended = ''",
        }
        return [
            f"{what} {' '.join(map(str, row))}"
            for what, question in questions.items()
            for row in self._rows(question)
        ]

    def enabled_jobs(self) -> list[tuple[str, int | None]]:
        """Every job that is enabled, and when it fires next."""
        rows = self._rows("SELECT id, next_at FROM jobs WHERE enabled = 1 ORDER BY id")
        return [(str(job), None if at is None else int(str(at))) for job, at in rows]

    def firings(self) -> list[tuple[str, int, str, str | None, int]]:
        """The log of all jobs: job, due time, kind, run, and how many firings the line stands for."""
        rows = self._rows("SELECT job, due_at, kind, run, count FROM firings ORDER BY number")
        return [
            (
                str(job),
                int(str(due_at)),
                str(kind),
                None if run is None else str(run),
                int(str(count)),
            )
            for job, due_at, kind, run, count in rows
        ]

    def events(self, kind: str) -> int:
        return len(self._rows("SELECT 1 FROM events WHERE kind = ?", kind))

    def numbers_of(self, session: SessionKey) -> tuple[object, object]:
        """The last number given in the session, and the highest in its queue."""
        rows = self._rows(
            "SELECT last_seq, (SELECT max(seq) FROM queue WHERE session = key) FROM sessions"
            " WHERE key = ?",
            session,
        )
        return (rows[0][0], rows[0][1]) if rows else (None, None)


class SharedDatabase:
    """A database in memory that lives as long as this does."""

    _made = 0

    def __init__(self) -> None:
        SharedDatabase._made += 1
        self.path = f"file:headway-cluster-{SharedDatabase._made}?mode=memory&cache=shared"
        self.reader = Reader(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.reader.close()

    def store(self, settings: Settings, clock: Clock) -> SqliteStore:
        return SqliteStore(self.path, settings, clock, exclusive=False, inline=True)


def interrupt_after(store: SqliteStore, steps: int) -> None:
    """Let the store's database break off after so many steps of work, in the middle of whatever; 0: no more."""
    writer = store._writer  # noqa: SLF001 - the one way to fail in the middle of a transaction
    if writer is not None:
        connection = writer._database._connection  # noqa: SLF001 - likewise
        connection.set_progress_handler((lambda: 1) if steps else None, steps)
