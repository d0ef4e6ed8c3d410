"""Slots lent to sub-runs, so that no run ever waits for its own parent's slot (L-4).

A run that waits for a sub-run does no work; its slot may carry one run that it waits for, directly or through
others, in the same lane. A borrowed slot can be lent on. Slots never cross lanes.
"""

from typing import TYPE_CHECKING

from headway.core.live import BACKGROUND, LiveRun

if TYPE_CHECKING:
    from headway.core.stage import Stage


def lend(stage: "Stage") -> None:
    """Start the candidates that a waiting ancestor can carry; lane room was used before."""
    while stage.borrowers:
        child = stage.borrowers.pop()
        if not child.posted:
            continue
        lender = _lender(child)
        if lender is None or stage.floor.agent_bar(child.agent, child.kind, stage.now):
            continue
        assert lender.ties is not None
        lender.ties.lent_to = child
        child.tie().borrowed_from = lender
        stage.floor.withdraw(child)
        stage.start(child, borrowed=True)


def give_back(stage: "Stage", live: LiveRun) -> bool:
    """The run's attempt is over: its slot goes on with who borrows it, or back to its lender.

    False: neither, the slot is free for the lane.
    """
    ties = live.ties
    assert ties is not None
    lender, borrower = ties.borrowed_from, ties.lent_to
    ties.borrowed_from = ties.lent_to = None
    ties.awaiting.clear()
    if borrower is not None:
        assert borrower.ties is not None
        borrower.ties.borrowed_from = lender
        if lender is not None:
            assert lender.ties is not None
            lender.ties.lent_to = borrower
        else:
            _recount(live, borrower)
        return True
    if lender is not None:
        assert lender.ties is not None
        lender.ties.lent_to = None
        stage.borrowers += _posted_below(lender)
        return True
    return False


def await_child(stage: "Stage", parent: LiveRun, child: LiveRun) -> None:
    """The parent waits for this sub-run from now on."""
    parent.tie().awaiting.append(child)
    stage.borrowers += _posted_below(parent)


def resume(stage: "Stage", parent: LiveRun, child: LiveRun) -> None:
    """The parent waits no longer: it works again, so what it lent becomes the borrower's own slot.

    The lane may be over its width by that one until something in it ends; nothing starts before.
    """
    ties = parent.ties
    if ties is None or child not in ties.awaiting:
        return
    ties.awaiting.remove(child)
    borrower = ties.lent_to
    if borrower is None or any(
        borrower is other or borrower.is_under(other) for other in ties.awaiting
    ):
        return
    assert borrower.ties is not None
    ties.lent_to = None
    borrower.ties.borrowed_from = None
    borrower.lane.in_use += 1
    if borrower.kind & BACKGROUND:
        borrower.lane.background += 1


def _lender(child: LiveRun) -> LiveRun | None:
    """The nearest ancestor that waits for this run, holds a slot of its lane and has not lent it."""
    below, above = child, child.parent
    while above is not None:
        ties = above.ties
        if above.ticket == 0 or ties is None or below not in ties.awaiting:
            return None
        if above.lane is child.lane and ties.lent_to is None:
            return above
        below, above = above, above.parent
    return None


def _posted_below(parent: LiveRun) -> list[LiveRun]:
    """Posted runs that this one waits for, directly or through others."""
    found: list[LiveRun] = []
    open_runs = [parent]
    while open_runs:
        ties = open_runs.pop().ties
        if ties is not None:
            found += [child for child in ties.awaiting if child.posted]
            open_runs += [child for child in ties.awaiting if child.ticket]
    return found


def _recount(holder: LiveRun, heir: LiveRun) -> None:
    """An own slot passes from one run to another: the lane's count of background slots follows."""
    was, becomes = holder.kind & BACKGROUND, heir.kind & BACKGROUND
    heir.lane.background += becomes - was
