"""Ends what goes on in a pane: all processes that belong to it, and the pane."""

import asyncio
import signal

from headway.calls import in_thread
from headway.runners import family
from headway.runners.family import Leader
from headway.runners.pane import Label, Pane
from headway.runners.panes import Panes

ENDING = "ending"
"""Written on a pane before it is ended, so that nobody adopts it meanwhile."""
_LOOKS_EVERY_S = 0.02


async def end_pane(panes: Panes, pane: Pane, grace_s: float) -> None:
    """End all processes of a pane, and close it."""
    await panes.mark(pane, ENDING, "1")
    await end_family(leader_of(pane), pane.label, (pane.server,), grace_s)
    await panes.close(pane)


def leader_of(pane: Pane) -> Leader:
    """The first process of a pane that was looked at just now, also if nobody has noted its birth yet.

    Else one that is about to start its program would not be found: nothing has the run in its environment yet.
    """
    if pane.dead or pane.leader.born:
        return pane.leader
    return family.child(pane.leader.pid, pane.server)


async def end_family(leader: Leader, label: Label, spared: tuple[int, ...], grace_s: float) -> None:
    """Ask all of them to end, then kill; returns when none of them is there."""

    async def signalled(number: int) -> bool:
        found = await in_thread(family.family, leader, (label.mark,), spared)
        family.send(found, number)
        return bool(found)

    if grace_s:
        if not await signalled(signal.SIGTERM):
            return
        try:
            async with asyncio.timeout(grace_s):
                while await signalled(0):  # noqa: ASYNC110 - the system tells nobody of their end
                    await asyncio.sleep(_LOOKS_EVERY_S)
                return
        except TimeoutError:
            pass
    while await signalled(signal.SIGKILL):  # noqa: ASYNC110 - the system tells nobody of their end
        await asyncio.sleep(_LOOKS_EVERY_S)
