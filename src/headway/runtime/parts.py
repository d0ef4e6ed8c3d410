"""The parts of a node, made in the order in which they need each other.

Where two need each other the earlier one reaches the later through here, when it is called and not before.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from headway.core.actions import Action, Finish
from headway.core.kernel import Kernel
from headway.model.run import Run
from headway.model.settings import Settings
from headway.model.words import Source
from headway.ports import Clock, Desk, Recorded, Store
from headway.runtime.attempts import Attempts
from headway.runtime.bus import Bus
from headway.runtime.callbacks import Callbacks
from headway.runtime.carrier import Carrier
from headway.runtime.claims import Claims
from headway.runtime.clock import follow_time
from headway.runtime.courier import Courier
from headway.runtime.deliveries import Deliveries
from headway.runtime.estimates import Estimates
from headway.runtime.follower import Follower
from headway.runtime.handle import HandleDesk
from headway.runtime.herald import Herald
from headway.runtime.ids import RunIds
from headway.runtime.intake import Intake
from headway.runtime.jobs import Jobs
from headway.runtime.looks import Looks
from headway.runtime.machine import Machine
from headway.runtime.membership import Membership
from headway.runtime.node import ThisNode
from headway.runtime.orders import Orders
from headway.runtime.orphans import Sweeper
from headway.runtime.outage import Outage
from headway.runtime.ownership import Ownership
from headway.runtime.permits import Permits
from headway.runtime.pruning import Pruner
from headway.runtime.reader import Reader
from headway.runtime.routes import Routes
from headway.runtime.scribe import Scribe
from headway.runtime.timekeeper import Timekeeper
from headway.runtime.tuner import Tuner
from headway.runtime.watch import Watch


class NodeDesk(Desk, HandleDesk, Protocol):
    """What the turns and the handles of a node can ask of it."""


class Parts:
    """One of each, and nothing that they do."""

    def __init__(  # noqa: PLR0917 - what every node is made from
        self,
        desk: NodeDesk,
        settings: Settings,
        store: Store,
        clock: Clock,
        ids: RunIds,
        fail: Callable[[BaseException], None],
        host: str = "",
    ) -> None:
        self._desk = desk
        self._settings = settings
        self._store = store
        self._clock = clock
        self._fail = fail
        self.host = host
        self.ids = ids
        self.bus = Bus()
        self.kernel = kernel = Kernel(settings, clock.now())
        if store.durable:
            kernel.set_shared()
        self.herald = Herald(self.bus, clock)
        self.outage = Outage(self.herald)
        self.callbacks = Callbacks(self.herald, settings.callback_within)
        self.courier = Courier(store, clock, self.herald)
        self.deliveries = Deliveries(self.courier, clock, shared=store.durable)
        self.pruner = Pruner(store, settings)
        self.attempts = Attempts(desk, kernel, clock, self._wake, fail, self.herald)
        self.estimates = Estimates(kernel, clock, self.callbacks, self._wake)
        self.carrier = self._new_carrier()
        # What a shared store holds may come from anywhere.
        self.carrier.watching = store.durable
        self.scribe = self._new_scribe()
        self.attempts.wake = self.scribe.wake
        self.permits = Permits(kernel, store, clock, self.scribe.wake)
        self.reader = Reader(kernel, store, clock, self.scribe.wake)
        self.ownership = Ownership(kernel, clock, self.attempts, self.scribe, self.herald, host)
        self.follower = self._new_follower()
        self.claims = self._new_claims()
        self.orders = self._new_orders()
        self.tuner = Tuner(kernel, store, clock, self.herald, self.scribe.wake)
        self.routes = Routes(store, clock)
        self.intake = self._new_intake()
        self.looks = Looks(
            store,
            self.routes,
            self.herald,
            self.attempts.runners,
            known=lambda: self.intake.agents,
        )
        self.attempts.function = self.looks.function
        self.timekeeper = self._new_timekeeper()
        self.jobs = Jobs(
            store,
            clock,
            ids,
            intake=self.intake,
            orders=self.orders,
            timekeeper=self.timekeeper,
        )
        self.node = self._new_node()
        self.membership = Membership(
            self.node,
            store,
            clock,
            settings,
            self.herald,
            self.outage,
            follow_time(clock),
            host,
        )
        self.watch = self._new_watch()
        self.sweeper = Sweeper(
            kernel,
            store,
            clock,
            settings,
            keepers=self.watch.keepers,
            look=self.watch.look_at,
            needed=self.watch.needed,
            herald=self.herald,
        )
        self.ownership.scan_soon = self.scan_soon

    def _new_carrier(self) -> Carrier:
        kernel, clock = self.kernel, self._clock
        return Carrier(
            self._desk,
            self.attempts,
            self.callbacks,
            self.herald,
            self.bus,
            estimate=self.estimates.ask,
            delivers=self.courier.look,
            follow=self._follow if self._store.durable else None,
            told=lambda ticket: kernel.told(ticket, clock.now()),
            firing_ended=self._firing_ended,
            typing=self._typing,
        )

    def _new_scribe(self) -> Scribe:
        return Scribe(
            self.kernel,
            self._store,
            self._clock,
            self.attempts,
            self.outage,
            prepare=self.deliveries.with_replies,
            carry_out=self.carrier.carry_out,
            recorded=self._recorded,
            rested=self._rested,
            fail=self._fail,
            asking=lambda: self.ownership.asking,
        )

    def _new_follower(self) -> Follower:
        live, asking = self.kernel.stage.runs, self.ownership.asking
        return Follower(
            self._store,
            self.carrier,
            is_live=lambda run_id: run_id in live or run_id in asking,
            hears_hints=lambda: self.membership.number > 0,
        )

    def _new_claims(self) -> Claims:
        return Claims(
            self.kernel,
            self._store,
            self._clock,
            alone=lambda: self.membership.alone,
            agents=self.ownership.fair_agents,
            take_in=self.ownership.take_in,
            put_back=self.ownership.put_back,
            scribe=self.scribe,
            follow=self._poll,
        )

    def _new_node(self) -> ThisNode:
        return ThisNode(
            self.kernel,
            self._store,
            self._clock,
            attempts=self.attempts,
            scribe=self.scribe,
            ownership=self.ownership,
            claims=self.claims,
            follower=self.follower,
            permits=self.permits,
            courier=self.courier,
            timekeeper=self.timekeeper,
            herald=self.herald,
        )

    def _new_watch(self) -> Watch:
        return Watch(
            self.kernel,
            self._store,
            self._clock,
            self._settings,
            attempts=self.attempts,
            herald=self.herald,
            machine=Machine(),
            host=self.host,
            node=lambda: self.membership.number,
            lanes=self.reader.lanes,
            scan_soon=self.scan_soon,
        )

    def _new_timekeeper(self) -> Timekeeper:
        return Timekeeper(
            self._store,
            self._clock,
            self._settings,
            self.ids,
            intake=self.intake,
            orders=self.orders,
            looks=self.looks,
            callbacks=self.callbacks,
            herald=self.herald,
        )

    def _new_orders(self) -> Orders:
        return Orders(
            self.kernel,
            self._store,
            self._clock,
            self.ids,
            scribe=self.scribe,
            carrier=self.carrier,
            ownership=self.ownership,
            claims=self.claims,
            reader=self.reader,
            herald=self.herald,
        )

    def _new_intake(self) -> Intake:
        return Intake(
            self.kernel,
            self._store,
            self._clock,
            self.ids,
            desk=self._desk,
            attempts=self.attempts,
            callbacks=self.callbacks,
            scribe=self.scribe,
            carrier=self.carrier,
            ownership=self.ownership,
            claims=self.claims,
            follower=self.follower,
            reader=self.reader,
            routes=self.routes,
            herald=self.herald,
            bus=self.bus,
        )

    def go_by(self, settings: Settings) -> None:
        """Go by these settings from now on; lanes, limits and agents are set one by one."""
        self.kernel.go_by(settings, self._clock.now())
        self.callbacks.within = settings.callback_within
        self.membership.go_by(settings)

    # The way from an earlier part to a later one.

    def _wake(self) -> None:
        self.scribe.wake()

    def _firing_ended(self, finish: Finish) -> None:
        self.timekeeper.ended(finish)

    def _typing(self, run: Run, on: bool) -> None:
        """A heartbeat shows nothing: mostly it has nothing to say (H-3)."""
        route = run.route
        if run.firing is not None:
            self.deliveries.has_firings = True
        if route is not None and run.source is not Source.HEARTBEAT and self.courier.types(route):
            self.callbacks.start(self.courier.typing(route, on=on))

    def _follow(self) -> None:
        self.follower.look()

    def _recorded(self, recorded: Recorded, actions: Sequence[Action]) -> Sequence[Action]:
        return self.node.recorded(recorded, actions)

    def scan_soon(self) -> None:
        """A worker may just have become unwanted."""
        self.sweeper.scan_soon()

    def _rested(self) -> None:
        self.node.rested()

    def _poll(self) -> None:
        self.node.poll()
