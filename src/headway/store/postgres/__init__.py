"""The PostgreSQL store: many nodes on one database, all equal.

What must be whole is one call of a function in the database (`migrations/0002_calls.sql` and those after it): one
round trip, one transaction, rows locked in one order. Python only puts batches together and takes answers apart.
Nothing is kept in a session of the server, so a pooler in transaction mode may stand in between; hints then need a
direct connection (`?listen=`), and without one the nodes poll.
"""

from headway.store.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
