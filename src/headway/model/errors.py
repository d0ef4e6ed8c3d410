"""Every error a caller can meet, in families by whose fault it is.

`Refused` is the caller's, `Unavailable` passes if tried again, `InvariantBroken` is a bug of ours. A run that
fails is not an error but an outcome; only `send`, which promises a reply, raises `RunEnded` when there is none.
Errors carry fields; their text is made from the fields in one place.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from headway.model.outcome import Json, Outcome
    from headway.model.words import State


class HeadwayError(Exception):
    """The root of all errors that Headway raises."""

    code: ClassVar[str] = "error"


class Refused(HeadwayError):
    """The request cannot be taken as it is. Nothing was kept of it."""

    code = "refused"


class Unavailable(HeadwayError):
    """Not now: the same request may well be taken later."""

    code = "unavailable"


class InvariantBroken(HeadwayError):
    """Headway is wrong. Please report it with the text."""

    code = "invariant_broken"


class InvalidInput(Refused):
    """A field holds a value that is not allowed."""

    code = "invalid_input"

    def __init__(self, field: str, value: object, allowed: str) -> None:
        self.field = field
        self.value = value
        self.allowed = allowed
        shown = repr(value)
        if len(shown) > 60:
            shown = f"{shown[:57]}..."
        super().__init__(f"{field}: {shown} is not allowed; it must be {allowed}")


class UnknownName(InvalidInput):
    """A field names something that does not exist; close names are suggested."""

    code = "unknown_name"

    def __init__(self, field: str, value: str, known: Iterable[str]) -> None:
        names = sorted(known)
        self.close = get_close_matches(value, names, n=1)
        hint = f" (did you mean {self.close[0]!r}?)" if self.close else ""
        super().__init__(field, value, f"one of: {', '.join(names) or 'none yet'}{hint}")


class UnknownOption(InvalidInput):
    """An option that does not exist, where options are given by name."""

    code = "unknown_option"

    def __init__(self, field: str, known: Iterable[str]) -> None:
        names = sorted(known)
        self.close = get_close_matches(field, names, n=1)
        hint = f" (did you mean {self.close[0]!r}?)" if self.close else ""
        super().__init__(field, field, f"one of the options: {', '.join(names)}{hint}")


class JobNotFound(Refused):
    """There is no such job."""

    code = "job_not_found"

    def __init__(self, job: str) -> None:
        self.job = job
        super().__init__(f"there is no job {job!r}; `headway jobs list` shows those there are")


class NotFound(Refused):
    """There is no run of that id, or it was forgotten after its retention."""

    code = "not_found"

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        super().__init__(f"run {run_id!r} is not known; finished runs are kept only for a while")


class TurnOver(Refused):
    """A turn that was stopped or has ended tried to start something (X-3)."""

    code = "turn_over"

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        super().__init__(f"run {run_id} was stopped or has ended: it can start no more work")


class CannotResume(Refused):
    """A run cannot be gone on with (W-3)."""

    code = "cannot_resume"

    def __init__(self, run_id: str, reason: str) -> None:
        self.run_id = run_id
        self.reason = reason
        super().__init__(f"run {run_id} cannot be resumed: {reason}")


class WouldDeadlock(Refused):
    """A turn would wait for a sub-run that can only start once the turn itself has ended."""

    code = "would_deadlock"

    def __init__(self, run_id: str, session: str) -> None:
        self.run_id = run_id
        self.session = session
        super().__init__(
            f"run {run_id} is in session {session!r}, which the waiting turn itself keeps busy: "
            "give the sub-run a session of its own, or do not wait for it"
        )


class NotRunning(Unavailable):
    """The engine was not started, or has been closed."""

    code = "not_running"

    def __init__(self) -> None:
        super().__init__("Headway is not running: use 'async with hw:' or 'await hw.start()' first")


class StoreUnavailable(Unavailable):
    """The store cannot be reached or cannot write just now; what was acknowledged before is safe."""

    code = "store_unavailable"

    def __init__(self, store: str, reason: str, advice: str = "") -> None:
        self.store = store
        self.reason = reason
        self.advice = advice
        super().__init__(f"{store}: {reason}{f'; {advice}' if advice else ''}")


class StoreRefused(Refused):
    """The store cannot be used as it is: a wrong address, password, file or version."""

    code = "store_refused"

    def __init__(self, store: str, reason: str, advice: str = "") -> None:
        self.store = store
        self.reason = reason
        self.advice = advice
        super().__init__(f"{store}: {reason}{f'; {advice}' if advice else ''}")


class WrongLoop(Refused):
    """The engine was asked from another event loop or thread than its own."""

    code = "wrong_loop"

    def __init__(self) -> None:
        super().__init__(
            "Headway runs on another event loop: use asyncio.run_coroutine_threadsafe(..., its loop)"
        )


class IllegalTransition(InvariantBroken):
    """A run was about to take a step that the table of states does not have (R-1)."""

    code = "illegal_transition"

    def __init__(self, current: "State", target: "State") -> None:
        self.current = current
        self.target = target
        super().__init__(f"a run cannot go from {current} to {target}")


class RunEnded(HeadwayError):
    """A run ended without the reply that was waited for; `outcome` says how."""

    code = "run_ended"

    def __init__(self, run_id: str, outcome: "Outcome") -> None:
        self.run_id = run_id
        self.outcome = outcome
        detail = f": {outcome.error}" if outcome.error else ""
        super().__init__(f"run {run_id} ended {outcome.state}/{outcome.reason}{detail}")


class RunFailed(RunEnded):
    """The agent raised, ran out of time, or was refused by a hook."""

    code = "run_failed"


class RunCancelled(RunEnded):
    """The run was stopped, superseded or cleared before it could reply."""

    code = "run_cancelled"


class QueueFull(RunEnded, Refused):
    """Too much is waiting already: the session's cap, or the admission limit for tasks."""

    code = "queue_full"


class SessionBusy(RunEnded, Refused):
    """The session was busy and its mode is `reject`."""

    code = "rejected_busy"


class QueueDropped(RunEnded, Refused):
    """A newer message took this one's place in a full queue."""

    code = "queue_dropped"


class MessageStale(RunEnded, Refused):
    """The message was sent before a `/stopall` that came first."""

    code = "stale"


class Draining(RunEnded, Unavailable):
    """The node is shutting down and takes no new work."""

    code = "draining"

    def __init__(self, run_id: str, outcome: "Outcome") -> None:
        super().__init__(run_id, outcome)
        self.args = (f"the node is about to stop: {self}",)


class LaneCleared(RunEnded, Refused):
    """The lane was cleared while the run waited in it."""

    code = "lane_cleared"


class Permanent(HeadwayError):
    """Raised by an agent: trying again is of no use (C-9)."""

    code = "permanent"


class WorkFailed(HeadwayError):
    """Raised by a runner: what went wrong, with a code and details that the outcome keeps.

    Unless it is `permanent` it may be tried again (C-9).
    """

    code = "work_failed"

    def __init__(
        self, text: str, code: str, details: "Json" = None, *, permanent: bool = False
    ) -> None:
        self.code = code  # type: ignore[misc]  # of this error, not of its family
        self.details = details
        self.permanent = permanent
        super().__init__(text)


class WorkerLost(HeadwayError):
    """Raised by a runner: the worker is gone, and nobody knows how it would have ended (D-7, W-3)."""

    code = "worker_lost"

    def __init__(self, text: str, details: "Json" = None) -> None:
        self.details = details
        super().__init__(text)


class RateLimited(HeadwayError):
    """Raised by an agent: its provider asks for a pause (X-6).

    Everything that shares the agent's provider key waits until then; the run itself is tried again.
    """

    code = "rate_limited"

    def __init__(self, retry_after: object) -> None:
        self.retry_after = retry_after
        super().__init__(f"the provider asks to wait {retry_after}")


class Refuse(HeadwayError):
    """Raised by a hook: this run shall not start (S-11). Its outcome is `failed/refused`."""

    code = "hook_refused"
