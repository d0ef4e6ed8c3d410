"""What makes a run unique: its message id on its route, and its idempotency key (S-8, D-6).

All stores go by the same keys and the same rule of when a key leads to an earlier run, and when it is free again.
"""

from typing import NamedTuple

from headway.model.outcome import Outcome
from headway.model.run import Run
from headway.model.settings import Settings
from headway.model.time import Span
from headway.model.words import Reason, State

_UNHANDLED = frozenset({Reason.DRAINING, Reason.ORPHANED})
"""Endings in which no agent dealt with the message: it may be delivered again (S-8)."""

UNSUCCESSFUL = frozenset({State.FAILED, State.CANCELLED, State.REJECTED})
"""Ends after which a caller may ask for a retry under the same key (D-6)."""

# What cannot be in a name or an id is between the parts of a key: escaped where it is all the same.
_BETWEEN = "\x1f"


class Key(NamedTuple):
    """One key of a run: as text, unique over all kinds of keys and all agents."""

    text: str
    idempotency: bool

    def lasts(self, settings: Settings) -> Span:
        return settings.idempotency if self.idempotency else settings.dedupe


def keys_of(run: Run) -> tuple[Key, ...]:
    """The keys of a run, the message id first; most runs that programs ask for have none."""
    if run.message_id is None and run.idempotency_key is None:
        return ()
    keys: list[Key] = []
    if run.message_id is not None:
        route = run.route
        # Without a route a message id is only unique within its session.
        place = (
            ("session", run.session)
            if route is None
            else ("route", route.channel, route.account, route.peer, route.thread)
        )
        keys.append(Key(_joined("message", run.agent, *place, run.message_id), False))
    if run.idempotency_key is not None:
        keys.append(Key(_joined("key", run.agent, run.idempotency_key), True))
    return tuple(keys)


def was_handled(outcome: Outcome) -> bool:
    """Whether an agent dealt with the run, so that its keys go on leading to it."""
    return outcome.state is not State.REJECTED and outcome.reason not in _UNHANDLED


def is_freed(key: Key, outcome: Outcome) -> bool:
    """Whether a run that ended so gives a key free.

    An orphaned run may have acted: its message may be delivered again (S-8), but who named an idempotency key is
    told what became of it (D-6).
    """
    if was_handled(outcome):
        return False
    return not key.idempotency or outcome.reason is not Reason.ORPHANED


def _joined(*parts: str) -> str:
    """The parts as one text that no other parts give. It has no NUL: not every database takes one."""
    return _BETWEEN.join(map(_plain, parts))


def _plain(part: str) -> str:
    if "\\" in part or _BETWEEN in part or "\0" in part:
        part = part.replace("\\", "\\\\").replace(_BETWEEN, "\\u").replace("\0", "\\0")
    return part
