"""Slots lent to sub-runs, so that no run ever waits for its own parent's slot (L-4).

A run that waits for another does no work; its slot may carry one run that it waits for, directly or through
others, in the same lane. A borrowed slot can be lent on. Slots never cross lanes.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from headway.core.live import BACKGROUND, LiveRun

if TYPE_CHECKING:
    from headway.core.stage import Stage


def lend(stage: "Stage") -> bool:
    """Start the candidates that a waiting run can carry, in the order in which they would start anyway.

    True if any was started: another run may have come to the head of its session.
    """
    lent = False
    stage.borrowers += stage.held_borrowers
    stage.held_borrowers = []
    while stage.borrowers:
        candidates, stage.borrowers = stage.borrowers, []
        candidates.sort(key=lambda child: (child.rank, child.order))
        for child in candidates:
            if not child.posted:
                continue
            lender = _lender(child)
            if lender is None:
                continue
            bar = stage.floor.load_bar(child, stage.now)
            if bar is not None:
                stage.held_borrowers.append(child)
                stage.floor.wake_later(child.agent, bar[1])
                continue
            lender.tie().lent_to = child
            child.tie().borrowed_from = lender
            stage.floor.borrow(child, stage.now)
            stage.start(child)
            lent = True
    return lent


def give_back(stage: "Stage", live: LiveRun) -> bool:
    """The run's attempt is over: its slot goes on with who borrows it, or back to its lender.

    False: neither, the slot is free for the lane.
    """
    ties = live.tie()
    lender, borrower = ties.borrowed_from, ties.lent_to
    ties.borrowed_from = ties.lent_to = None
    waited_for, ties.awaiting = ties.awaiting, []
    for other in waited_for:
        other.tie().awaited_by.remove(live)
    if borrower is not None:
        borrower.tie().borrowed_from = lender
        if lender is not None:
            lender.tie().lent_to = borrower
            _take_back(stage, lender)
        else:
            borrower.lane.background += (borrower.kind & BACKGROUND) - (live.kind & BACKGROUND)
        return True
    if lender is not None:
        lender.tie().lent_to = None
        stage.borrowers += _posted_below(lender)
        return True
    return False


def begin_wait(stage: "Stage", waiter: LiveRun, other: LiveRun) -> None:
    """The waiter does nothing but wait for this run from now on."""
    waiter.tie().awaiting.append(other)
    other.tie().awaited_by.append(waiter)
    stage.borrowers += _posted_below(waiter)


def end_wait(stage: "Stage", waiter: LiveRun, other: LiveRun) -> None:
    """The waiter works again, or waits only for others."""
    ties = waiter.tie()
    if other in ties.awaiting:
        ties.awaiting.remove(other)
        other.tie().awaited_by.remove(waiter)
        _take_back(stage, waiter)


def pass_on_wait(part: LiveRun, whole: LiveRun) -> None:
    """A run becomes part of another: whoever waits for it waits for that one."""
    if part.ties is None:
        return
    waiters, part.ties.awaited_by = part.ties.awaited_by, []
    for waiter in waiters:
        awaiting = waiter.tie().awaiting
        awaiting[awaiting.index(part)] = whole
        whole.tie().awaited_by.append(waiter)
    borrowed_from = part.ties.borrowed_from
    if borrowed_from is not None:
        part.ties.borrowed_from = None
        whole.tie().borrowed_from = borrowed_from
        borrowed_from.tie().lent_to = whole


def _take_back(stage: "Stage", lender: LiveRun) -> None:
    """A lender that waits for its borrower no longer works itself: the borrower's slot becomes its own.

    The lane may be over its width by that one until something in it ends; nothing starts before.
    """
    ties = lender.tie()
    borrower = ties.lent_to
    if borrower is None or any(other is lender for other in _waiting_for(borrower)):
        return
    ties.lent_to = None
    borrower.tie().borrowed_from = None
    borrower.lane.in_use += 1
    borrower.lane.background += borrower.kind & BACKGROUND
    stage.borrowers += _posted_below(lender)


def _lender(child: LiveRun) -> LiveRun | None:
    """The nearest run that waits for this one, holds a slot of its lane and has not lent it."""
    for waiter in _waiting_for(child):
        if waiter.lane is child.lane and waiter.tie().lent_to is None:
            return waiter
    return None


def _waiting_for(live: LiveRun) -> Iterator[LiveRun]:
    """Running runs that wait for this one, directly or through others, the nearest first."""
    seen = [live]
    for run in seen:
        if run.ties is not None:
            for waiter in run.ties.awaited_by:
                if waiter.ticket and waiter not in seen:
                    seen.append(waiter)
                    yield waiter


def _posted_below(waiter: LiveRun) -> list[LiveRun]:
    """Posted runs that this one waits for, directly or through others."""
    seen = [waiter]
    for run in seen:
        if run.ties is not None:
            seen += [other for other in run.ties.awaiting if other not in seen]
    return [run for run in seen if run.posted]
