"""The follower: learns from the store how runs and orders ended that this node does not decide for (D-10)."""

import asyncio
from collections.abc import Callable

from headway.model.errors import Unavailable
from headway.model.outcome import Outcome
from headway.model.run import RunId
from headway.model.time import SECOND
from headway.model.words import Reason, State
from headway.ports import Store
from headway.runtime.carrier import Carrier
from headway.runtime.handle import Handle

_GATHERS_S = 0.005
"""Hints that come so close together are answered by one look."""
_LOOKS_EVERY_S = 0.1
_MOST = 1_000
_SOME = 10
_SEARCHES_EVERY_S = 5.0
_FORGOTTEN = Outcome(
    State.FAILED, Reason.ERROR, error="it ended so long ago that its outcome was forgotten"
)


class Follower:
    """Looks at the store when a hint says so, and at each poll."""

    def __init__(
        self,
        store: Store,
        carrier: Carrier,
        is_live: Callable[[RunId], bool],
        hears_hints: Callable[[], bool],
    ) -> None:
        self._store = store
        self._carrier = carrier
        self._is_live = is_live
        self._hears_hints = hears_hints
        self._woken = asyncio.Event()
        self._searched_at_s = 0.0
        self._verdicts: dict[RunId, asyncio.Event] = {}

    def look(self) -> None:
        self._woken.set()

    async def run(self) -> None:
        while True:
            await self._wait()
            await asyncio.sleep(_GATHERS_S)
            self._woken.clear()
            try:
                await self._look_once()
            except Unavailable:
                await asyncio.sleep(1)
                self._woken.set()

    async def _wait(self) -> None:
        """Until a hint or a poll. A process that nobody can give hints looks often, while somebody waits."""
        while not self._woken.is_set():
            if self._hears_hints():
                await self._woken.wait()
            elif self._carrier.handles or self._carrier.orders:
                await asyncio.sleep(_LOOKS_EVERY_S)
                self._woken.set()
            else:
                await asyncio.sleep(_LOOKS_EVERY_S)

    async def verdict(self, handle: Handle, within: int) -> Outcome | None:
        """The outcome of a run that its owner may refuse, if that comes soon (D-10)."""
        decided = self._verdicts[handle.id] = asyncio.Event()
        self.look()
        try:
            async with asyncio.timeout(within / SECOND):
                await decided.wait()
        except TimeoutError:
            pass
        finally:
            del self._verdicts[handle.id]
        return handle.outcome

    async def _look_once(self) -> None:
        handles = self._carrier.handles
        foreign = [run_id for run_id in handles if not self._is_live(run_id)]
        for start in range(0, len(foreign), _MOST):
            outcomes = await self._store.outcomes(foreign[start : start + _MOST])
            for run_id, outcome in outcomes.items():
                if not self._is_live(run_id):
                    self._settle(run_id, outcome)
        await self._look_for_forgotten()
        if self._carrier.orders:
            answers = await self._store.answers(list(self._carrier.orders))
            for order, answer in answers.items():
                self._carrier.respond(order, answer)

    async def _look_for_forgotten(self) -> None:
        """A run that ended long before this node could look may be past its retention (R-2). A few at a time."""
        now_s = asyncio.get_running_loop().time()
        if now_s - self._searched_at_s < _SEARCHES_EVERY_S:
            return
        self._searched_at_s = now_s
        missing = [run_id for run_id in self._carrier.handles if not self._is_live(run_id)]
        for run_id in missing[:_SOME]:
            if await self._store.find(run_id) is None and not self._is_live(run_id):
                self._settle(run_id, _FORGOTTEN)
            elif run_id in self._carrier.handles:
                # To the end of the line: the next look is for others.
                self._carrier.handles[run_id] = self._carrier.handles.pop(run_id)

    def _settle(self, run_id: RunId, outcome: Outcome) -> None:
        handle = self._carrier.handles.get(run_id)
        if handle is None:
            return
        del self._carrier.handles[run_id]
        self._carrier.tell(handle, outcome)
        decided = self._verdicts.get(run_id)
        if decided is not None:
            decided.set()
