"""What stands in front of a served node: the gateway behind an open port, and with `--demo` those who use it."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from headway.cli.serve.introduction import introduction
from headway.cli.serve.listening import Listening
from headway.cli.serve.reloading import LiveConfig
from headway.cli.serve.show import Company, Show
from headway.facade import Headway
from headway.gateway import build_app
from headway.logs import Log
from headway.model.errors import HeadwayError
from headway.model.time import SECOND, Span

if TYPE_CHECKING:
    from headway.model.views import Reloaded


class HttpFront:
    """HTTP, WebSocket and event streams in front of one node."""

    closing: Span = 2 * SECOND

    def __init__(
        self,
        headway: Headway,
        listening: Listening,
        *,
        config: LiveConfig,
        log: Log,
        say: Callable[[str], None],
        show: Show,
    ) -> None:
        self._headway = headway
        self._listening = listening
        self._config = config
        self._say = say
        self._log = log
        self._company = show.company
        self._hints = show.hints
        """Said once, not after each restart."""
        self._inside = AsyncExitStack()
        self._tasks: list[asyncio.Task[None]] = []
        self._tokens = 0

    async def open(self) -> None:
        # To the very end: what is cut when the node closes is worth a line, too.
        self._headway.engine.bus.tap(self._log.hear)
        self._tokens = len(await self._headway.tokens.list())
        gateway = build_app(self._headway, self._config.server, config=self._config)
        await self._inside.enter_async_context(gateway)
        await self._listening.open(gateway.app)
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(_accompany(one)) for one in self._company]

    async def ended(self) -> None:
        """Wait until it serves no more. Raises if it broke."""
        await self._listening.ended()

    async def close(self) -> None:
        """Streams end first, so that nobody is cut in the middle of an event; then the port is given back."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._inside.aclose()
        await self._listening.close()

    async def reload(self) -> None:
        try:
            done = await self._config.reload()
        except HeadwayError as wrong:
            self._say(f"reload refused, nothing was changed: {wrong}")
        except Exception:
            # A server does not end because its config could not be read again.
            logging.getLogger(__name__).exception("the reload failed")
            self._say("reload failed, see the log")
        else:
            self._say(_told(done))

    def introduction(self) -> str:
        config, url = self._config, self._listening.url
        lines = introduction(self._headway, url, config.server, config.file, self._tokens)
        hints, self._hints = self._hints, ()
        return "\n".join((*lines, *hints))


async def _accompany(one: Company) -> None:
    """A server goes on without its company, and says why it is alone."""
    try:
        await one()
    except Exception:
        logging.getLogger(__name__).exception("the demo has ended")


def _told(done: "Reloaded") -> str:
    changed = f"reloaded: {', '.join(done.changed) or 'nothing changed'}"
    if not done.needs_restart:
        return changed
    return f"{changed}; from the next start: {', '.join(done.needs_restart)}"
