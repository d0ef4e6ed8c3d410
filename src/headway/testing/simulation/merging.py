"""Whether runs that became one belong together: nothing is lost or mixed up (S-7)."""

from headway.model.run import Run
from headway.model.words import State
from headway.testing.simulation.mirror import Mirror
from headway.testing.simulation.seen import Seen, Where
from headway.testing.simulation.violation import Invariant, broken


def merge(mirror: Mirror, run: Run) -> None:
    """The parts end next, each naming the merged run."""
    parts = [mirror.runs[part] for part in run.merged_from if part in mirror.runs]
    if len(parts) != len(run.merged_from) or len(parts) < 2 or run.id in mirror.runs:
        broken(Invariant.MERGE, f"{run.id} is merged from {run.merged_from}")
    first = parts[0]
    for part in parts:
        _check_alike(first, part)
        if part.ticket or part.attempt or part.where is Where.TURN:
            broken(Invariant.MERGE, f"{part} was started and is merged")
        part.merging_into = run.id
    _check_content(run, [part.run for part in parts])
    collecting = first.where is Where.LINE
    if collecting:
        _check_line(first, parts)
    else:
        _check_window(mirror, parts)
    seen = mirror.admit(run, first.parent, State.QUEUED if collecting else State.PENDING)
    seen.width = first.width
    for part in parts:
        for waiter in part.awaited_by:
            mirror.begin_wait(waiter, seen)
    if collecting:
        seen.order = first.order
        seen.rank = first.rank
        seen.place = first.place
        seen.collect = True
        seen.queued_at = first.queued_at
        seen.started_before = first.started_before
        seen.where = Where.LINE
        seen.session.line.insert(0, seen)


def may_collect(first: Run, other: Run) -> bool:
    """Never merged: another channel, recipient, account, thread, authority, or other terms."""
    authority = first.sender.authority if first.sender is not None else ""
    others = other.sender.authority if other.sender is not None else ""
    return (
        authority == others
        and (first.agent, first.lane, first.route) == (other.agent, other.lane, other.route)
        and (first.priority, first.deadline_at) == (other.priority, other.deadline_at)
        and (first.timeout, first.parent) == (other.timeout, other.parent)
    )


def window_key(run: Run) -> tuple[object, ...]:
    """What the messages of one debounce window have in common."""
    return (
        run.agent,
        run.lane,
        run.route,
        run.sender,
        run.priority,
        run.deadline_at,
        run.timeout,
        run.queue,
        run.parent,
    )


def _check_alike(first: Seen, part: Seen) -> None:
    if not part.message or part.session is not first.session:
        broken(Invariant.MERGE, f"{part} is merged with {first}")
    if not may_collect(first.run, part.run):
        broken(Invariant.MERGE, f"{part} and {first} belong to different conversations")


def _check_content(run: Run, parts: list[Run]) -> None:
    text = "\n".join(part.text for part in parts if part.text)
    attachments = tuple(attachment for part in parts for attachment in part.attachments)
    overflow = tuple(line for part in parts for line in part.overflow)
    if (run.text, run.attachments, run.overflow) != (text, attachments, overflow):
        broken(Invariant.MERGE, f"{run.id} does not say what its parts said")


def _check_line(first: Seen, parts: list[Seen]) -> None:
    """A collected turn is all that may be collected at the head of the line, and nothing else."""
    line = first.session.line
    if line[: len(parts)] != parts or not all(part.collect for part in parts):
        broken(Invariant.MERGE, f"{parts} are merged out of the line {line}")
    if len(line) > len(parts):
        after = line[len(parts)]
        if after.collect and not after.attempt and may_collect(first.run, after.run):
            broken(Invariant.MERGE, f"{after} was left out of the turn of {parts}")


def _check_window(mirror: Mirror, parts: list[Seen]) -> None:
    """What a window brought together: all of it, of one sender, once it has closed."""
    window = None
    for part in parts:
        if part.run.sender != parts[0].run.sender:
            broken(Invariant.MERGE, f"{part} and {parts[0]} are of different senders")
        if part.where is Where.WINDOW:
            assert part.window is not None
            window = part.session.windows[part.window]
        elif part.where is not Where.LATER or (part.run.due_at or 0) > mirror.now:
            broken(Invariant.MERGE, f"{part} is merged from {part.where.value}")
    if window is not None:
        if any(part not in parts for part in window.parts):
            broken(Invariant.MERGE, f"{parts} are merged without the rest of their window")
        if window.closes_at > mirror.now:
            broken(Invariant.WINDOW, f"{parts} are merged before their window closed")
