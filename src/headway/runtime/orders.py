"""Orders: stops, cancels and changes of a session's queue, given to whoever owns the session.

An order gets its number from the store, in one line with the session's runs; the owner's kernel carries it out in
that order, here or on another node. Who gave it waits until that is stored (S-9).
"""

import asyncio

import msgspec

from headway.core.actions import Stopped
from headway.core.kernel import Kernel
from headway.model.errors import NotRunning
from headway.model.places import (
    Answer,
    Cancel,
    Clear,
    Command,
    Configure,
    Order,
    Stop,
    StopAll,
)
from headway.model.run import QueueOptions, Route, RunId, SessionKey
from headway.model.time import Instant
from headway.ports import Clock, Elsewhere, Granted, Hint, Store
from headway.runtime.carrier import Carrier
from headway.runtime.claims import Claims
from headway.runtime.herald import Herald
from headway.runtime.ids import RunIds
from headway.runtime.ownership import Ownership
from headway.runtime.reader import Reader
from headway.runtime.scribe import Scribe


class Orders:
    """Gives orders to sessions and waits for what they reach."""

    def __init__(
        self,
        kernel: Kernel,
        store: Store,
        clock: Clock,
        ids: RunIds,
        *,
        scribe: Scribe,
        carrier: Carrier,
        ownership: Ownership,
        claims: Claims,
        reader: Reader,
        herald: Herald,
    ) -> None:
        self._kernel = kernel
        self._store = store
        self._clock = clock
        self._ids = ids
        self._scribe = scribe
        self._carrier = carrier
        self._ownership = ownership
        self._claims = claims
        self._reader = reader
        self._herald = herald

    async def cancel(self, run_id: RunId) -> Stopped:
        live = self._kernel.stage.runs.get(run_id)
        if live is not None:
            session = live.run.session
        else:
            view = await self._reader.find(run_id)
            if view.outcome is not None:
                return Stopped()
            session = view.run.session
        return _stopped(await self._give(session, Cancel(run_id)))

    async def supersede(self, run_id: RunId) -> None:
        """A later firing of its job takes the place of this run (C-7)."""
        await self._end(Cancel(run_id, superseded=True))

    async def end_waiting(self, run_id: RunId) -> None:
        """Its job was disabled: the run ends, unless it has begun (C-10)."""
        await self._end(Cancel(run_id, waiting=True))

    async def _end(self, command: Cancel) -> None:
        live = self._kernel.stage.runs.get(command.run_id)
        view = None if live is not None else await self._store.find(command.run_id)
        run = live.run if live is not None else view.run if view is not None else None
        if run is not None and (view is None or view.outcome is None):
            await self._give(run.session, command, wait=False)

    async def stop(self, session: SessionKey) -> Stopped:
        stopped = _stopped(await self._give(session, Stop()))
        self._herald.stopped(session, stopped, everything=False)
        return stopped

    async def stop_all(
        self,
        session: SessionKey,
        *,
        sent_at: Instant | None = None,
        message_id: str | None = None,
        route: Route | None = None,
    ) -> Stopped:
        sent_at = self._clock.now() if sent_at is None else sent_at
        stopped = _stopped(await self._give(session, StopAll(sent_at, message_id, route)))
        self._herald.stopped(session, stopped, everything=True)
        return stopped

    async def clear(self, session: SessionKey) -> int:
        return (await self._give(session, Clear())).waiting

    async def configure(
        self, session: SessionKey, options: QueueOptions | None, *, change: bool = False
    ) -> None:
        """Set the session's own options; as a change, what they do not say stays as it was."""
        await self._give(session, Configure(options, change))

    async def _give(self, session: SessionKey, command: Command, *, wait: bool = True) -> Answer:
        """Give the session's owner an order, and wait until it was carried out and that is stored.

        Without `wait`, only for an owner that is here: where nobody is, whoever comes next carries it out.
        """
        loop = self._carrier.loop
        if not self._scribe.running or loop is None:
            raise NotRunning
        order = Order(self._ids.next(), session, command)
        answered: asyncio.Future[Answer] = loop.create_future()
        self._carrier.orders[order.id] = answered
        try:
            try:
                placed = await self._store.order(order)
            except BaseException:
                self._claims.in_doubt()
                raise
            if placed is None:
                return Answer()
            if isinstance(placed, Granted):
                self._carry_out(msgspec.structs.replace(order, seq=placed.seq), placed)
            elif not placed.owned:
                self._claims.hear(Hint.WORK)
            if not wait and isinstance(placed, Elsewhere):
                return Answer()
            return await answered
        finally:
            self._carrier.orders.pop(order.id, None)

    def _carry_out(self, order: Order, granted: Granted) -> None:
        if self._ownership.is_next(order.session, granted) or not self._store.durable:
            self._kernel.carry_out(order, granted.epoch, granted.memory, self._clock.now())
            self._scribe.wake()
        else:
            self._claims.look_at((order.session,))


def _stopped(answer: Answer) -> Stopped:
    return Stopped(answer.running, answer.waiting)
