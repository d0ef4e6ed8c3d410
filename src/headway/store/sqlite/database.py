"""A connection to the file, and what its errors mean."""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TypeAlias

from headway.model.errors import HeadwayError, StoreRefused, StoreUnavailable
from headway.store.sqlite.statements import MIGRATIONS, STATEMENTS

Column: TypeAlias = str | int | bytes | None

BUSY_MS = 2_000
"""How long another process may hold the file before a call is given up."""

PROGRAM_VERSION = 1
"""What a database's stored minimum is compared with."""

_OLDEST_SQLITE = (3, 35)
_NO_FILE = frozenset({"SQLITE_CANTOPEN"})
_NO_DATABASE = frozenset({"SQLITE_NOTADB", "SQLITE_CORRUPT"})
_REASONS = {
    "SQLITE_BUSY": ("another process is writing to it", "it is tried again by itself"),
    "SQLITE_LOCKED": ("another connection is writing to it", "it is tried again by itself"),
    "SQLITE_FULL": ("the disk is full", "make room; nothing that was acknowledged is lost"),
    "SQLITE_READONLY": ("it cannot be written to", "check the rights of the file and its folder"),
    "SQLITE_PERM": ("it may not be used", "check the rights of the file and its folder"),
    "SQLITE_IOERR": ("the disk does not read or write", "check the disk"),
    "SQLITE_CANTOPEN": (
        "the file cannot be opened",
        "check that its folder exists and may be written to",
    ),
    "SQLITE_NOTADB": ("this file is not a SQLite database", "name another file"),
    "SQLITE_CORRUPT": ("the database is damaged", "restore it from a backup"),
}


def is_of_one_request(error: BaseException) -> bool:
    """Whether an error is about the data of one call, so that others in the same transaction can go on."""
    if isinstance(error, sqlite3.OperationalError):
        return False
    if isinstance(error, sqlite3.DatabaseError):
        return type(error) is not sqlite3.DatabaseError
    return True


def error_from(store: str, error: sqlite3.Error, *, opening: bool = False) -> HeadwayError:
    """What a caller is told instead of the driver's words."""
    name = getattr(error, "sqlite_errorname", None) or ""
    primary = "_".join(name.split("_")[:2])
    reason, advice = _REASONS.get(primary, (str(error), ""))
    refused = primary in _NO_DATABASE or (opening and primary in _NO_FILE)
    return (StoreRefused if refused else StoreUnavailable)(store, reason, advice)


class Database:
    """One connection. Used by one thread at a time; transactions are begun and ended by name only."""

    def __init__(self, path: str, *, readonly: bool = False, busy_ms: int = BUSY_MS) -> None:
        if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
            raise StoreRefused(
                path,
                f"SQLite {sqlite3.sqlite_version} is too old",
                "use a Python with SQLite 3.35 or newer",
            )
        self.path = path
        uri = path.startswith("file:")
        if readonly and not uri:
            path, uri = f"{Path(path).absolute().as_uri()}?mode=ro", True
        self._connection = sqlite3.connect(
            path,
            timeout=busy_ms / 1_000,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=1_024,
            uri=uri,
        )
        self._execute = self._connection.execute
        try:
            self._set_up(readonly=readonly)
        except BaseException:
            self._connection.close()
            raise

    def _set_up(self, *, readonly: bool) -> None:
        pragmas = ["PRAGMA cache_size = -65536", "PRAGMA temp_store = MEMORY"]
        if readonly:
            pragmas.append("PRAGMA query_only = ON")
        else:
            pragmas += [
                "PRAGMA journal_mode = WAL",
                "PRAGMA synchronous = FULL",
                "PRAGMA wal_autocheckpoint = 4000",
            ]
        for pragma in pragmas:
            self._execute(pragma).fetchall()

    def close(self) -> None:
        self._connection.close()

    def run(self, name: str, *values: Column) -> int:
        """Carry a statement out; answers how many rows it changed."""
        return self._execute(STATEMENTS[name].text, values).rowcount

    def row(self, name: str, *values: Column) -> tuple[Column, ...] | None:
        """The only row of an answer."""
        rows = self._execute(STATEMENTS[name].text, values).fetchall()
        return rows[0] if rows else None

    def rows(self, name: str, *values: Column) -> list[tuple[Column, ...]]:
        return self._execute(STATEMENTS[name].text, values).fetchall()

    def write(self, name: str, rows: Sequence[Sequence[Column]]) -> int:
        """Carry a statement out for many rows at once; answers how many rows it changed."""
        changed = 0
        for text, values in self._chunks(name, rows):
            changed += self._execute(text, values).rowcount
        return changed

    def read(
        self,
        name: str,
        rows: Sequence[Sequence[Column]],
        before: tuple[Column, ...] = (),
        after: tuple[Column, ...] = (),
    ) -> list[tuple[Column, ...]]:
        """What a statement answers for many rows; `before` and `after` are its other values."""
        found: list[tuple[Column, ...]] = []
        for text, values in self._chunks(name, rows):
            found += self._execute(text, (*before, *values, *after)).fetchall()
        return found

    def plain(self, text: str, values: Sequence[Column] = ()) -> list[tuple[Column, ...]]:
        """SQL that has no name: the schema's, and lists narrowed in many ways."""
        return self._execute(text, values).fetchall()

    def begin(self) -> None:
        # A transaction that reads first and writes later fails at once under WAL if another one wrote meanwhile.
        self._execute("BEGIN IMMEDIATE")

    def commit(self) -> None:
        self._execute("COMMIT")

    def rollback(self) -> None:
        if self._connection.in_transaction:
            self._execute("ROLLBACK")

    @contextmanager
    def one_moment(self) -> Iterator[None]:
        """What is read meanwhile is all as of one moment."""
        if self._connection.in_transaction:
            # A store without a file reads where it writes.
            yield
            return
        self._execute("BEGIN")
        try:
            yield
        finally:
            self.rollback()

    def save(self) -> None:
        self._execute("SAVEPOINT request")

    def release(self) -> None:
        self._execute("RELEASE request")

    def undo(self) -> None:
        self._execute("ROLLBACK TO request")
        self._execute("RELEASE request")

    def data_version(self) -> Column:
        """Another number whenever another connection has written."""
        return self._execute("PRAGMA data_version").fetchone()[0]  # type: ignore[no-any-return]

    @staticmethod
    def _chunks(
        name: str, rows: Sequence[Sequence[Column]]
    ) -> Iterable[tuple[str, Sequence[Column]]]:
        statement = STATEMENTS[name]
        start = 0
        while start < len(rows):
            text, size = statement.sized(len(rows) - start)
            chunk = rows[start : start + size] if start or size < len(rows) else rows
            values = list(chain.from_iterable(chunk))
            # Rows of nulls match nothing and are never inserted: each statement that takes many says so.
            values += [None] * (size * statement.width - len(values))
            yield text, values
            start += size


def version_of(database: Database) -> int:
    """The schema's version; 0: there is nothing yet."""
    known = database.plain("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'meta'")
    if not known:
        return 0
    found = database.plain("SELECT name, value FROM meta WHERE name IN ('version', 'minimum')")
    rows = {name: value for name, value in found}  # noqa: C416
    minimum = rows.get("minimum")
    if isinstance(minimum, int) and minimum > PROGRAM_VERSION:
        raise StoreRefused(
            database.path,
            f"the database needs a program of version {minimum} or newer, this one is {PROGRAM_VERSION}",
            "update Headway on this machine",
        )
    version = rows.get("version")
    return version if isinstance(version, int) else 0


def migrate(database: Database) -> list[str]:
    """Bring the schema to this program's version, whole or not at all; answers what was run."""
    if version_of(database) >= MIGRATIONS[-1].version:
        return []
    done: list[str] = []
    database.begin()
    try:
        # Another process may have been quicker: only under the write lock is the version certain.
        version = version_of(database)
        for migration in MIGRATIONS:
            if migration.version > version:
                for statement in _statements_of(migration.text):
                    database.plain(statement)
                database.plain(
                    "UPDATE meta SET value = ? WHERE name = 'version'", (migration.version,)
                )
                done.append(migration.name)
        database.commit()
    except BaseException:
        database.rollback()
        raise
    return done


def _statements_of(text: str) -> list[str]:
    """The single statements of a migration: `executescript` would end the transaction they belong to."""
    statements: list[str] = []
    part = ""
    for line in text.splitlines(keepends=True):
        part += line
        if sqlite3.complete_statement(part):
            statements.append(part)
            part = ""
    return statements
