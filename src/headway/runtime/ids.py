"""Chance: ids of runs, unique over all nodes and in the order of their making on each, secrets, and jitter."""

import random
import secrets
from collections.abc import Callable

from headway.model.run import JobId, RunId
from headway.model.time import MILLISECOND, Instant

_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"


class RunIds:
    """Makes ids such as `1k3f9a2xq-42`: a prefix for this incarnation of a node, and a number."""

    def __init__(self, prefix: str) -> None:
        self._prefix = f"{prefix}-"
        self._made = 0

    @classmethod
    def for_node(cls, started_at: Instant) -> "RunIds":
        stamp = _base32(started_at // MILLISECOND)
        return cls(f"{stamp}{_base32(secrets.randbits(30))}")

    def next(self) -> RunId:
        self._made += 1
        return f"{self._prefix}{self._made}"  # type: ignore[return-value]  # a RunId() call costs as much again


def new_job_id() -> JobId:
    """Short, because people type it: `j7k2m9xq4`."""
    return JobId(f"j{_base32(secrets.randbits(40)):0>8}")


def new_boot_id() -> str:
    """One start of a server, as part of the ids of its events."""
    return _base32(secrets.randbits(40))


def new_token_id() -> str:
    return f"{_base32(secrets.randbits(40)):0>8}"


def new_secret() -> str:
    """256 bits that nobody guesses, as letters and digits."""
    return f"{_base32(secrets.randbits(256)):0>52}"


def new_jitter() -> Callable[[], float]:
    """A source of numbers from 0 to 1, different in each process."""
    return random.Random().random


def _base32(number: int) -> str:
    text = ""
    while number:
        number, digit = divmod(number, 32)
        text = _DIGITS[digit] + text
    return text or "0"
