"""The SQLite store: one file, no server, one owning process.

`store` is the adapter of `ports.Store`; what it is asked for goes as requests to `writer`, which makes one
transaction of all that came while the last one was written. The work is in plain functions that know nothing of
threads: `intake` (new runs and orders), `recording` (what the kernel decided), `ownership` (nodes, claims, slots),
`keeping` (outbox, retention), `timetable` and `advances` (jobs, and how they go on), `tokens` and `reading`. SQL
is in `queries` and `migrations`.

A batch is written with few, wide statements instead of many narrow ones: Python's lock is given back and taken
again around each statement, and while the event loop is busy each taking back may cost milliseconds.

May import `ports`, `core` (for the actions it records), `model` and what the stores share. If a write here were
not whole, or came without its owner's epoch, a crash could lose or double work.
"""

from headway.store.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
