"""What follows when an attempt returns without a reply that counts: it was cut, failed, limited, or never began.

Its run gets its outcome or stands in line again; it is left to the kernel to start what may start then.
"""

import msgspec

from headway.core.actions import Died, Ended, Failed, Limited, NotBegun, NoteExhausted, NoteHold
from headway.core.endings import TOOK_TOO_LONG, cut_outcome
from headway.core.live import LiveRun
from headway.core.retry import delay
from headway.core.stage import Stage
from headway.model.outcome import Json, Outcome
from headway.model.time import MILLISECOND, Instant, Span
from headway.model.words import Cut, Reason, State

_LEASE_IN_DOUBT: Span = 100 * MILLISECOND
"""How long a run waits that was not begun because the lease was in doubt, so that it is not tried in a circle."""
_MOST_RATE_LIMITS = 10
"""A run that is told to wait this often in a row fails with `rate_limited`."""


class Returning:
    """Decides whether a run whose attempt is over is tried again."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def without_reply(self, live: LiveRun, ended: Ended, jitter: float) -> None:
        """A reply that comes after a cut counts for nothing."""
        if type(ended) is NotBegun and (live.cut is None or live.cut is Cut.LOST):
            self._not_begun(live)
        elif live.cut is not None:
            self.cut(live, live.cut, details=ended.details if type(ended) is Failed else None)
        elif type(ended) is Failed:
            self._failed(live, ended, jitter)
        elif type(ended) is Died:
            self._died(live, ended)
        else:
            assert isinstance(ended, Limited)
            self._limited(live, ended)

    def cut(self, live: LiveRun, cut: Cut, *, again: bool = False, details: Json = None) -> None:
        """A cancelled attempt has returned, or was left behind; a runner may know what it did until then."""
        stage = self._stage
        if cut is Cut.PREEMPTED:
            live.attempt -= 1
            stage.queue_again(live, cut=cut)
        elif cut is Cut.OVERRAN:
            self._try_again(live, TOOK_TOO_LONG, 0.5, cut)
        elif live.attempt < live.run.max_attempts and (
            cut is Cut.LOST or (cut is Cut.DRAINED and (again or stage.keep_waiting))
        ):
            stage.queue_again(live, cut=cut)
        else:
            if cut is Cut.LOST:
                stage.return_absorbed(live)
            outcome = cut_outcome(cut)
            if details is not None:
                outcome = msgspec.structs.replace(outcome, details=details)
            stage.finish(live, outcome)

    def _not_begun(self, live: LiveRun) -> None:
        """Nothing was done, so the attempt does not count. A node that is not suspended yet will be soon."""
        live.attempt -= 1
        until = None if self._stage.suspended else self._stage.now + _LEASE_IN_DOUBT
        self._stage.queue_again(live, until=until, cut=Cut.LOST)

    def _failed(self, live: LiveRun, ended: Failed, jitter: float) -> None:
        if ended.permanent or live.retries >= live.run.retries:
            self._stage.finish(
                live,
                Outcome(
                    State.FAILED,
                    ended.reason,
                    error=ended.error,
                    code=ended.code,
                    details=ended.details,
                ),
            )
        else:
            self._try_again(live, ended.error, jitter)

    def _died(self, live: LiveRun, ended: Died) -> None:
        """Its worker is gone: as if its node had died, it is tried again where attempts are left (D-7)."""
        stage = self._stage
        if live.attempt < live.run.max_attempts:
            stage.queue_again(live, until=resumed_at(live, stage.now), error=ended.error)
            return
        if live.agent.settings.resume_after is not None:
            stage.actions.append(NoteExhausted(live.run, live.attempt))
        outcome = Outcome(
            State.FAILED,
            Reason.ORPHANED,
            error=ended.error,
            code=ended.code,
            details=ended.details,
        )
        stage.finish(live, outcome)

    def _try_again(self, live: LiveRun, error: str, jitter: float, cut: Cut | None = None) -> None:
        live.limited = 0
        until = self._stage.now + delay(live.retries, jitter)
        live.retries += 1
        self._stage.queue_again(live, until=until, cut=cut, error=error)

    def _limited(self, live: LiveRun, ended: Limited) -> None:
        """The provider asks for a pause: all that share its key wait, this run first in its session (X-6)."""
        stage = self._stage
        until = stage.now + ended.retry_after
        stage.floor.hold(stage.floor.provider_of(live.agent), until)
        name = live.agent.settings.provider or live.agent.name
        stage.actions.append(NoteHold(name, until))
        live.limited += 1
        deadline_at = live.run.deadline_at
        if live.limited >= _MOST_RATE_LIMITS or (deadline_at is not None and until >= deadline_at):
            error = ended.error or "the provider's rate limit outlasted the run"
            stage.finish(live, Outcome(State.FAILED, Reason.RATE_LIMITED, error=error))
        else:
            live.attempt -= 1
            stage.queue_again(live, until=until, error=ended.error)


def resumed_at(live: LiveRun, now: Instant) -> Instant | None:
    """When a run whose worker died is tried again: at once, or as its agent's session may be resumed (W-3)."""
    after = live.agent.settings.resume_after
    if after is None or live.started_at + after <= now:
        return None
    return live.started_at + after
