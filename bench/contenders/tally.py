"""Counting what a contender has done, and how long that took."""

import asyncio
import time

from bench._load import Broken, Drained, Stored, until


class Tally:
    """Called by every job; knows when the last one is done, or the time is over."""

    def __init__(self, jobs: int, seconds: float = float("inf")) -> None:
        self._jobs = jobs
        self._seconds = seconds
        self._done = 0
        self._began = 0.0
        self._ended = 0.0
        self._submitting = 0.0
        self._submit_rate = 0.0
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()

    def submitting(self) -> None:
        self._submitting = time.perf_counter()

    def submitted(self) -> None:
        self._submit_rate = self._jobs / (time.perf_counter() - self._submitting)

    def count(self) -> None:
        """One job more has run."""
        now = time.perf_counter()
        if not self._done:
            self._began = now
        if self._done and now - self._began > self._seconds:
            self._finish()
            return
        self._done += 1
        self._ended = now
        if self._done == self._jobs:
            self._finish()

    async def finished(self, stored: Stored) -> Drained:
        """Wait until all is done and stored as done, or until the time is over."""
        await self._over.wait()
        if self._done == self._jobs:
            await until(stored)
            self._ended = time.perf_counter()
        if self._done < 2:
            raise Broken("too few jobs ran for a rate")
        return Drained(self._done, self._ended - self._began, self._submit_rate)

    def _finish(self) -> None:
        # From another thread too: one contender runs its jobs on a loop of its own.
        self._loop.call_soon_threadsafe(self._over.set)
