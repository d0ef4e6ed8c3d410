"""Places in line: one look answers all who ask in the same turn of the loop (T-5).

Whoever submits asks at once for the new run's place. Of a burst all are in line before anybody looks, so each
place is exact as of then, and the whole burst costs one forecast.
"""

import asyncio

from headway.core import forecast
from headway.core.kernel import Kernel
from headway.model.run import RunId


class Places:
    """Answers how many starts come before a run."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._asked: list[tuple[RunId, asyncio.Future[int | None]]] = []

    async def of(self, run_id: RunId) -> int | None:
        """0: it is next, or runs. None: it has ended, or another node decides for it."""
        live = self._kernel.stage.runs.get(run_id)
        if live is None:
            return None
        if live.ticket and not live.awaits_slot:
            return 0
        loop = asyncio.get_running_loop()
        if not self._asked:
            loop.call_soon(self._look)
        told: asyncio.Future[int | None] = loop.create_future()
        self._asked.append((run_id, told))
        return await told

    def _look(self) -> None:
        asked, self._asked = self._asked, []
        for run_id, told in asked:
            if told.done():
                continue
            try:
                told.set_result(self._place(run_id))
            except Exception as wrong:  # noqa: BLE001 - told to whoever asked: nobody shall wait for ever
                told.set_exception(wrong)

    def _place(self, run_id: RunId) -> int | None:
        live = self._kernel.stage.runs.get(run_id)
        if live is None:
            return None
        if live.absorbed or (live.ticket and not live.awaits_slot):
            return 0
        return forecast.place(self._kernel, run_id)
