"""Hints between nodes by LISTEN and NOTIFY (N-16). A hint may be lost: each node also polls.

Each node listens on a channel of its own and on one for all, over a direct connection. It first tells itself
something: if that does not come back, a pooler stands in between, and the node lives by polling alone.
"""

import asyncio
from collections.abc import Callable, Coroutine

import asyncpg

from headway.model.errors import Unavailable
from headway.ports import Hint
from headway.store.postgres.connections import Connections, is_pooled
from headway.store.postgres.troubles import ANY

_EVERY = 0.02
"""Seconds between two batches of hints, on the average: a burst of work is one hint."""
_ALONE = 0.005
"""The same for a hint that goes out with the commit of a single run: it costs no transaction of its own."""
_MOST_OFFERED = 16
_LONGEST_NUMBER = 18
_AHEAD = 0.1
"""Seconds of such pauses that may be left out after a while of silence: few runs in turn are no burst."""
_PING_WITHIN = 2.0
_CHECK_EVERY = 15.0
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 5.0
_HELLO = "hello"
_PING = "ping"
_WORDS = {str(hint): hint for hint in Hint}


class Hints:
    """Tells other nodes, and hears them."""

    def __init__(self, connections: Connections, schema: str, tell: str, spawn: "Spawn") -> None:
        self._connections = connections
        self._channels = f"headway_{schema}_"
        self._tell_statement = tell
        self._spawn = spawn
        self._node = 0
        self._pending: set[tuple[int, Hint | str]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._free_at = 0.0
        """When the pauses after all batches so far are over."""
        self._offered: list[int] | None = []
        """The numbers of runs that wait, as hints told; None if one said less than that."""
        self._hear: Callable[[Hint], None] = _deaf
        self._heard_ping = asyncio.Event()
        self._changed = asyncio.Event()
        self.alone = False
        """Whether no other node is known to live: then there is nobody to tell."""
        self.working = asyncio.Event()
        """Set while hints of others arrive."""

    def open(self, hear: Callable[[Hint], None]) -> None:
        self._hear = hear
        self._spawn(self._listen())

    def enlisted(self, node: int) -> None:
        """From now on hear what is for this node; the others learn that they are not alone."""
        self._node = node
        self._changed.set()
        self.alone = False
        self._add(0, _HELLO)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._hear = _deaf

    @property
    def node(self) -> int:
        """The node that speaks here; 0 for a process that is none."""
        return self._node

    def by_commit(self, hint: Hint) -> tuple[str | None, str]:
        """Channel and text of a hint to all, for a transaction to tell as it commits: then it cannot be lost.

        No channel: nobody is there to hear it, or something was told a moment ago: then it is for the next batch.
        """
        if self.alone or self._next_at() > self._now():
            return None, ""
        self._pause(_EVERY)
        return self._channel(0), f"{self._node} {hint}"

    def tell_all(self, hint: Hint) -> None:
        if not self.alone:
            self._add(0, hint)

    def tell(self, node: int | None, hint: Hint) -> None:
        """Tell one node; callers that are no node hear nothing."""
        if node and node == self._node:
            asyncio.get_running_loop().call_soon(self._pass_on, hint)
        elif node and not self.alone:
            self._add(node, hint)

    def along(self) -> str | None:
        """The channels, but for the node, of a hint that goes out with the next commit; None if it may not."""
        # A pooler's transactions begin and end with its client's, so nothing can be committed in between.
        if self.alone or self._connections.pooled or self._timer is not None:
            return None
        if self._next_at() > self._now():
            return None
        return self._channels

    def went_along(self) -> None:
        self._pause(_ALONE)

    def offered(self) -> list[int] | None:
        """The runs that hints told of since this was asked last, by number. None: there may be others."""
        offered, self._offered = self._offered, []
        return offered

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _pause(self, seconds: float) -> None:
        self._free_at = max(self._free_at, self._now()) + seconds

    def _next_at(self) -> float:
        """When the next batch may go out."""
        return self._free_at - _AHEAD

    def _add(self, node: int, hint: "Hint | str") -> None:
        self._pending.add((node, hint))
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(max(loop.time(), self._next_at()), self._send)

    def _send(self) -> None:
        self._timer = None
        pending, self._pending = self._pending, set()
        if pending:
            self._pause(_EVERY)
            self._spawn(self._notify(sorted(pending)))

    async def _notify(self, hints: "list[tuple[int, Hint | str]]") -> None:
        channels = [self._channel(node) for node, _ in hints]
        payloads = [f"{self._node} {hint}" for _, hint in hints]
        try:
            await self._connections.call(self._tell_statement, channels, payloads)
        except Unavailable:
            """A hint may be lost."""

    def _channel(self, node: int) -> str:
        return f"{self._channels}{node or 'all'}"

    # Hearing.

    async def _listen(self) -> None:
        """Keep one connection that listens, for as long as the store is open."""
        pause = _FIRST_PAUSE
        while True:
            try:
                connection = await self._connections.direct()
            except Unavailable:
                """Not now."""
            else:
                try:
                    if await is_pooled(connection):
                        self._pass_on(Hint.ALL)
                        return
                    await self._attend(connection)
                except (Unavailable, *ANY):
                    """The connection broke: the next one begins with a look at everything."""
                finally:
                    connection.terminate()
                if self.working.is_set():
                    self.working.clear()
                    pause = _FIRST_PAUSE
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _attend(self, connection: asyncpg.Connection) -> None:
        broken = asyncio.Event()

        def ended(_: asyncpg.Connection) -> None:
            broken.set()
            self._changed.set()

        connection.add_termination_listener(ended)
        await connection.add_listener(self._channel(0), self._heard)
        own = 0
        while not broken.is_set():
            self._changed.clear()
            if own != self._node:
                if own:
                    await connection.remove_listener(self._channel(own), self._heard)
                own = self._node
                await connection.add_listener(self._channel(own), self._heard)
            if not self.working.is_set():
                await self._ping()
                self.working.set()
                # What was told before somebody listened is found by a look at everything.
                self._pass_on(Hint.ALL)
            try:
                async with asyncio.timeout(_CHECK_EVERY):
                    await self._changed.wait()
            except TimeoutError:
                await connection.fetchval("select 1", timeout=_PING_WITHIN)

    async def _ping(self) -> None:
        """Over another connection: it must come back by way of the database."""
        self._heard_ping.clear()
        statement, channel = self._tell_statement, self._channel(self._node)
        await self._connections.call(statement, [channel], [f"{self._node} {_PING}"])
        async with asyncio.timeout(_PING_WITHIN):
            await self._heard_ping.wait()

    def _heard(self, *told: object) -> None:
        """The driver tells connection, process, channel and text; only the text matters."""
        sender, _, said = str(told[-1]).partition(" ")
        if said == _PING:
            self._heard_ping.set()
        if sender == str(self._node):
            return
        if said == _HELLO:
            self.alone = False
            return
        word, _, number = said.partition(" ")
        if word in _WORDS:
            self._pass_on(_WORDS[word], number)

    def _pass_on(self, hint: Hint, number: str = "") -> None:
        offered = self._offered
        if hint is Hint.WORK and _is_number(number) and len(offered or ()) < _MOST_OFFERED:
            if offered is not None:
                offered.append(int(number))
        elif hint in {Hint.WORK, Hint.ALL}:
            self._offered = None
        self._hear(hint)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER


Spawn = Callable[[Coroutine[object, object, None]], None]


def _deaf(hint: Hint) -> None:
    """Before it was opened, and after it was closed."""
