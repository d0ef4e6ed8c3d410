"""Sessions, as text for people."""

from collections.abc import Sequence

import msgspec

from headway.cli.answers import NOTHING, lines_of, one_line
from headway.cli.tables import table
from headway.wire.sessions import QueueAnswer, SessionAnswer, SessionSummary

_SHOWN = 10


def sessions_table(sessions: Sequence[SessionSummary]) -> str:
    if not sessions:
        return "no session has work here"
    head = ("session", "agents", "running", "waiting", "debouncing")
    rows = [
        (
            one_line(session.key),
            ", ".join(session.agents) or NOTHING,
            str(session.running_count),
            str(session.waiting_count),
            str(session.debouncing_count),
        )
        for session in sessions
    ]
    return table(head, rows)


def session_lines(session: SessionAnswer) -> str:
    """All about one session."""
    rows = [
        ("session", one_line(session.key)),
        ("agents", ", ".join(session.agents) or NOTHING),
        ("running", _runs(session.running, session.running_count)),
        ("waiting", _runs(session.waiting, session.waiting_count)),
    ]
    if session.debouncing_count:
        rows.append(("debouncing", _runs(session.debouncing, session.debouncing_count)))
    rows.append(("queue", queue_text(session.queue)))
    return lines_of(rows)


def queue_text(queue: QueueAnswer) -> str:
    """Its own options, as `/queue` writes them."""
    said = [
        f"{name.replace('_', '-')}:{value}"
        for name, value in msgspec.structs.asdict(queue).items()
        if value is not None
    ]
    return " ".join(said) or "no options of its own: the wider settings hold"


def _runs(ids: Sequence[str], count: int) -> str:
    if not count:
        return NOTHING
    more = ", …" if count > _SHOWN else ""
    return f"{count}: {', '.join(ids[:_SHOWN])}{more}"
