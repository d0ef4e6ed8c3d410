"""Estimates: how full a session's context is, as a user's function says: one that fills up is throttled (S-2)."""

from collections.abc import Callable

from headway.core.kernel import Kernel
from headway.model.run import SessionKey
from headway.ports import Clock
from headway.runtime.callbacks import Callbacks, TokenEstimate


class Estimates:
    """Asks the function beside the scheduler, and tells the kernel what it answered."""

    def __init__(
        self, kernel: Kernel, clock: Clock, callbacks: Callbacks, wake: Callable[[], None]
    ) -> None:
        self._kernel = kernel
        self._clock = clock
        self._callbacks = callbacks
        self._wake = wake

    def set(self, estimate: TokenEstimate | None) -> None:
        self._callbacks.estimate = estimate
        self._kernel.set_estimating(estimate is not None)

    def ask(self, session: SessionKey) -> None:
        self._callbacks.start(self._answer(session))

    async def _answer(self, session: SessionKey) -> None:
        tokens, window = await self._callbacks.estimated(session)
        self._kernel.estimated(session, self._clock.now(), tokens, window)
        self._wake()
