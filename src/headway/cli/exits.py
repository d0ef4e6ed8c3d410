"""Exit codes: which family of errors ends a command with which number. The only place that knows."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from headway.model.errors import HeadwayError, Refused, Unavailable

BROKEN = 1
REFUSED = 2
UNAVAILABLE = 3
NO_REPLY = 4
INTERRUPTED = 130

EXIT_CODES = (
    "Exit codes: 0 it went well, 1 Headway itself failed, 2 it cannot be done as it was asked, "
    "3 not now: the server or the store cannot be reached, try again."
)
REPLY_EXIT_CODES = (
    f"{EXIT_CODES[:-1]}, 4 the run ended without a reply, 130 you stopped waiting; the run goes on."
)


def exit_code(error: HeadwayError) -> int:
    """The number that a command ends with after this error."""
    match error:
        case Unavailable():
            return UNAVAILABLE
        case Refused():
            return REFUSED
        case _:
            return BROKEN


def first_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """One error out of the groups around it: of many that ask at once, each is told the same."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


@contextmanager
def errors_told() -> Iterator[None]:
    """Turn an error of Headway into one line on stderr and its exit code. Anything else is a bug, shown as one."""
    try:
        yield
    except HeadwayError as error:
        print(f"headway: {error}", file=sys.stderr)
        raise typer.Exit(exit_code(error)) from None
