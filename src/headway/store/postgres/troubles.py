"""What the driver raises, said in our words. No error of the driver leaves this store."""

import asyncpg
from asyncpg.exceptions import (
    ClientConfigurationError,
    InterfaceError,
    InternalClientError,
    PostgresError,
)

from headway.model.errors import StoreRefused, StoreUnavailable

_START = "start PostgreSQL, or see that this address can be reached"

_AT_OPENING: dict[str, tuple[str, str]] = {
    "28P01": ("the password is wrong", "check user and password in the URL"),
    "28000": ("the login is refused", "check the user in the URL and the server's pg_hba.conf"),
    "3D000": ("there is no such database", "create it, or check its name in the URL"),
    "42501": (
        "the user may not create what is needed",
        "grant it CREATE on the database, or migrate as its owner",
    ),
    "3F000": ("there is no such schema", "grant the user CREATE on the database"),
}
"""By SQLSTATE: what no repetition will change."""

_PASSING = ("08", "25", "53", "55", "57", "58", "40")
"""Classes of SQLSTATE that pass: connection, read-only, resources, locks, shutdown, disk, conflicts."""

LOST = (
    OSError,
    InterfaceError,
    InternalClientError,
    asyncpg.PostgresConnectionError,
    TimeoutError,
)
"""The connection is gone or hangs."""

CONFLICTS = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)
"""Of two transactions one must go again."""

BAD_DATA = (
    asyncpg.DataError,
    asyncpg.IntegrityConstraintViolationError,
    asyncpg.ProgramLimitExceededError,
)
"""A value of the batch is at fault, not the database. `DataError` is also raised before anything is sent."""

ANY = (*LOST, PostgresError)


def refusal(shown: str, error: BaseException) -> StoreRefused | StoreUnavailable:
    """Why the store cannot be opened."""
    if isinstance(error, PostgresError):
        known = _AT_OPENING.get(sqlstate_of(error))
        if known is not None:
            return StoreRefused(shown, *known)
    if isinstance(error, ValueError | ClientConfigurationError):
        return StoreRefused(shown, str(error), "check the URL")
    return unavailability(shown, error)


def unavailability(shown: str, error: BaseException) -> StoreUnavailable:
    """Why a call could not be answered."""
    if isinstance(error, TimeoutError):
        return StoreUnavailable(shown, "it does not answer", _START)
    if isinstance(error, PostgresError):
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        passes = sqlstate_of(error).startswith(_PASSING)
        return StoreUnavailable(shown, text, "" if passes else f"SQLSTATE {sqlstate_of(error)}")
    reason = str(error) or type(error).__name__
    return StoreUnavailable(shown, f"cannot be reached: {reason}", _START)


def constraint_of(error: BaseException) -> str:
    """Which constraint a row was against."""
    return getattr(error, "constraint_name", None) or ""


def sqlstate_of(error: BaseException) -> str:
    return getattr(error, "sqlstate", None) or ""
