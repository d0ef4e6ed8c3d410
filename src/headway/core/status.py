"""`/status`: what a session is at, in a few lines for the person who asks in the chat."""

from collections.abc import Sequence

from headway.core.elsewhere import SessionElsewhere
from headway.core.kernel import Kernel
from headway.core.why import explain
from headway.model.run import Run, SessionKey
from headway.model.time import SECOND, Instant, Span, span_text
from headway.model.value import Value
from headway.model.views import RunView

MOST_LINES = 5
"""A chat is not a log: of many that wait, the first are shown and the rest are counted."""
_LONGEST_TEXT = 40


class Going(Value, frozen=True):
    """A run that runs, and for how long."""

    run: Run
    since: Span


class Held(Value, frozen=True):
    """A run that waits, and why."""

    run: Run
    why: str


def status_here(kernel: Kernel, key: SessionKey, now: Instant) -> str | None:
    """The status of a session that this node decides for; None if it has nothing here."""
    session = kernel.stage.sessions.get(key)
    if session is None:
        return None
    going = [Going(live.run, now - live.started_at) for live in session.running if live.has_slot]
    about_to = [live for live in session.running if not live.has_slot]
    buffered = [live for buffer in (session.buffers or {}).values() for live in buffer.messages]
    waiting = [*about_to, *session.waiting, *buffered]
    held = []
    for live in waiting[:MOST_LINES]:
        why = explain(kernel, live.run.id)
        held.append(Held(live.run, "" if why is None else str(why)))
    return status_text(going, held, len(waiting) - len(held))


def status_elsewhere(
    running: Sequence[RunView],
    waiting: Sequence[RunView],
    elsewhere: SessionElsewhere,
    now: Instant,
) -> str:
    """The status of a session that another node decides for, as far as the store tells."""
    going = [Going(view.run, now - (view.started_at or now)) for view in running]
    held = [Held(view.run, str(elsewhere.why(view))) for view in waiting[:MOST_LINES]]
    return status_text(going, held, len(waiting) - len(held))


def status_text(going: Sequence[Going], held: Sequence[Held], more: int = 0) -> str:
    lines = [f"running for {_length(each.since)}: {_words(each.run)}" for each in going]
    lines += [f"waiting: {_words(each.run)}{f': {each.why}' if each.why else ''}" for each in held]
    if more > 0:
        lines.append(f"and {more} more waiting")
    return "\n".join(lines) or "nothing runs and nothing waits"


def _length(since: Span) -> str:
    """To the second: who asks in a chat wants no fractions."""
    return span_text(max(since, 0) // SECOND * SECOND)


def _words(run: Run) -> str:
    """What was asked, shortly, and the run's id."""
    text = " ".join(run.text.split())
    if run.task is not None and not text:
        text = run.task.action
    if not text:
        return f"run {run.id}"
    short = text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 1]}…"
    return f"“{short}” (run {run.id})"
