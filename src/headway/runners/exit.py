"""Tells at once when a process ends that is not a child of ours, where the system can."""

import asyncio
import os
from contextlib import suppress
from types import TracebackType
from typing import Self

from headway.runners import family
from headway.runners.family import Leader


class Exit:
    """The end of a process. Where the system tells nobody of it, it shows at the next look."""

    def __init__(self, leader: Leader) -> None:
        self._leader = leader
        self._handle = -1
        self._rung = asyncio.Event()

    @property
    def came(self) -> bool:
        return self._rung.is_set()

    async def wait(self, seconds: float) -> None:
        """Until it ends, at most so long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._rung.wait()

    def __enter__(self) -> Self:
        if hasattr(os, "pidfd_open"):
            with suppress(OSError):
                self._handle = os.pidfd_open(self._leader.pid)
                if family.lives(self._leader):  # So the handle is that of this process, for good.
                    asyncio.get_running_loop().add_reader(self._handle, self._ring)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._handle >= 0:
            asyncio.get_running_loop().remove_reader(self._handle)
            os.close(self._handle)
            self._handle = -1

    def _ring(self) -> None:
        asyncio.get_running_loop().remove_reader(self._handle)
        self._rung.set()
