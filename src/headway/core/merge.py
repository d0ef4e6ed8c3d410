"""Several messages become one turn: what may be merged, and how (S-7, collect)."""

from collections.abc import Sequence

import msgspec

from headway.model.run import Run, RunId


def may_collect(first: Run, other: Run) -> bool:
    """Never merged: another channel, recipient, account, thread or sender authority."""
    authority = first.sender.authority if first.sender else ""
    others = other.sender.authority if other.sender else ""
    return (
        first.route == other.route
        and authority == others
        and first.agent == other.agent
        and first.lane == other.lane
        and first.priority == other.priority
        and first.deadline_at == other.deadline_at
        and first.timeout == other.timeout
        and first.parent == other.parent
    )


def merged(runs: Sequence[Run]) -> Run:
    """One run with the texts joined by newlines and the attachments in order.

    Its id is made from the first one's, so that repeating a merge after a crash gives the same run.
    """
    first, last = runs[0], runs[-1]
    return msgspec.structs.replace(
        first,
        id=RunId(f"{first.id}m"),
        text="\n".join(run.text for run in runs if run.text),
        attachments=tuple(attachment for run in runs for attachment in run.attachments),
        message_id=last.message_id,
        sent_at=last.sent_at,
        idempotency_key=None,
        overflow=tuple(line for run in runs for line in run.overflow),
        merged_from=tuple(run.id for run in runs),
    )
