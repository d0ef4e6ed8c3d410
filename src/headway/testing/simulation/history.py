"""A random history: what happens next is drawn, then told to the driver."""

from collections.abc import Callable
from random import Random

import msgspec

from headway.core.actions import Died, Done, Ended, Failed, Limited
from headway.core.kernel import Kernel
from headway.model.outcome import Reply
from headway.model.run import RunId
from headway.model.settings import LaneSettings, Limits
from headway.model.time import Instant
from headway.model.words import Reason, State
from headway.testing.simulation.driver import Driver
from headway.testing.simulation.seen import Seen
from headway.testing.simulation.violation import Invariant, broken
from headway.testing.simulation.worlds import TICK, World

_OPEN_LANE = LaneSettings(4)
_TWIN_SHARE = 1 / 150
"""How often a copy of the kernel goes along; copying takes longer than all else."""
_MOST_SETTLING_STEPS = 20_000


class History:
    """One seed: a world, a driver, and the dice."""

    def __init__(self, seed: int, *, kernel: type[Kernel] = Kernel) -> None:
        self._rng = Random(seed)
        self.world = World(self._rng)
        gated = self._rng.random() < (0.1 if self.world.swift else 0.6)
        self.driver = Driver(self.world.settings, kernel=kernel, gated=gated)
        self.driver.set_estimating(self._rng.random() < (0.1 if self.world.swift else 0.4))
        self._runs = 0
        self._steps = 0
        self._deaf: set[int] = set()
        """Attempts that do not listen to their cancellation."""
        self._stuck: set[int] = set()
        """Attempts that never return by themselves."""
        self._judged: int = 0
        self._doings: list[Callable[[], None]] = []
        self._weights: list[float] = []
        for doing, weight in self._all_doings():
            rare = weight < 3
            if not rare or self._rng.random() < 0.75:
                self._doings.append(doing)
                self._weights.append(weight * self._rng.choice((0.5, 1, 1, 2)))

    def _all_doings(self) -> list[tuple[Callable[[], None], float]]:
        return [
            (self._submit, 34),
            (self._return, 40 if self.world.swift else 24),
            (self._begin, 14),
            (self._delegate, 6),
            (self._await, 5),
            (self._wait, 4),
            (self._steer, 4),
            (self._estimate, 5),
            (self._resume, 1),
            (self._return_late, 2),
            (self._use, 2),
            (self._cancel, 2.5),
            (self._stop, 1.5),
            (self._stop_all, 1.5),
            (self._clear, 1),
            (self._configure, 1),
            (self._set_lane, 2.5),
            (self._set_ahead, 3),
            (self._clear_lane, 0.4),
            (self._set_limits, 1),
            (self._set_agent, 1),
            (self._drain, 0.5),
            (self._lose, 0.5),
            (self._release_idle, 3),
        ]

    def step(self) -> None:
        """Time passes, or not, and one thing happens."""
        self._steps += 1
        rng = self._rng
        if rng.random() < _TWIN_SHARE:
            self.driver.copy_kernel()
        self.driver.pass_time(self._next_instant())
        if self.world.swift:
            self._set_ahead()
        if self.driver.mirror.draining and rng.random() < 0.1:
            self._drain()
        else:
            rng.choices(self._doings, self._weights)[0]()
        self.driver.check(rng.randrange(1 << 16))

    def _next_instant(self) -> Instant:
        now = self.driver.now
        wake_at = self.driver.kernel.wake_at
        dice = self._rng.random()
        if dice < 0.4:
            return now
        if dice < (0.5 if self.world.swift else 0.75) and wake_at is not None:
            return max(now, wake_at)
        if dice < 0.97:
            return now + self._rng.randint(1, 10) * (TICK // 10 if self.world.swift else TICK)
        return now + self._rng.randint(1, 300) * TICK

    # What can happen: runs and attempts.

    def _submit(self) -> None:
        self._submit_under(None)

    def _delegate(self) -> None:
        parent = self._any_begun()
        if parent is not None:
            self._submit_under(parent)

    def _submit_under(self, parent: Seen | None) -> None:
        self._runs += 1
        run_id = RunId(f"r{self._runs}")
        run = self.world.run(run_id, self.driver.now, None if parent is None else parent.run)
        self.driver.submit(run)

    def _begin(self) -> None:
        waiting = [
            seen
            for seen in self.driver.mirror.attempts.values()
            if seen.state is State.ASSIGNED and not seen.ahead
        ]
        if waiting:
            self.driver.begins(self._rng.choice(waiting))

    def _return(self) -> None:
        seen = self._any_attempt()
        if seen is None:
            return
        self._judge(seen.ticket)
        if seen.ticket in self._stuck or (seen.cut is not None and seen.ticket in self._deaf):
            return
        if seen.awaiting and seen.cut is None and self._rng.random() < 0.6:
            return
        self.driver.returns(seen, self._end_of(seen), self._rng.random())

    def _end_of(self, seen: Seen) -> Ended:
        dice = self._rng.random()
        if seen.state is State.ASSIGNED:
            dice = 0.7 + 0.3 * dice
        if dice < 0.7:
            return Done(Reply("yes"))
        if dice < 0.82:
            return Failed("no")
        if dice < 0.87:
            return Failed("never", Reason.REFUSED, permanent=True)
        if dice < (0.95 if self.world.swift else 0.92):
            return Died("gone")
        return Limited(self._rng.choice((0, 1, 5, 30)) * TICK)

    def _judge(self, ticket: int) -> None:
        """Each attempt has its character."""
        while self._judged < ticket:
            self._judged += 1
            dice = self._rng.random()
            if dice < 0.04:
                self._stuck.add(self._judged)
            elif dice < 0.15:
                self._deaf.add(self._judged)

    def _return_late(self) -> None:
        if self.driver.late:
            self.driver.returns_late(self._rng.choice(self.driver.late), Done(Reply("late")))

    def _use(self) -> None:
        seen = self._any_begun()
        if seen is not None:
            self.driver.uses(seen, self._rng.choice((1, 10, 100)))

    def _wait(self) -> None:
        """Nothing but time."""

    # Sub-runs, steering, estimates.

    def _await(self) -> None:
        mirror = self.driver.mirror
        waiter = self._any_begun()
        if waiter is None:
            return
        others = [seen for seen in mirror.runs.values() if seen.parent is waiter]
        if not others and self._rng.random() < 0.1:
            others = [seen for seen in mirror.runs.values() if seen is not waiter]
        if others:
            self.driver.awaits(waiter, self._rng.choice(others))

    def _resume(self) -> None:
        waiting = [seen for seen in self.driver.mirror.attempts.values() if seen.awaiting]
        if waiting:
            waiter = self._rng.choice(waiting)
            self.driver.resumes(waiter, self._rng.choice(waiter.awaiting))

    def _steer(self) -> None:
        if self.driver.offers:
            place = self._rng.randrange(len(self.driver.offers))
            self.driver.steered(*self.driver.offers.pop(place))

    def _estimate(self) -> None:
        if self.driver.asked:
            key = self._rng.choice(self.driver.asked)
            self.driver.estimated(
                key, self._rng.choice((0, 59, 60, 100)), self._rng.choice((0, 100))
            )

    # Cancelling.

    def _cancel(self) -> None:
        runs = list(self.driver.mirror.runs)
        self.driver.cancel(self._rng.choice(runs) if runs else RunId("nobody"))

    def _stop(self) -> None:
        self.driver.stop(self._rng.choice(self.world.keys))

    def _stop_all(self) -> None:
        rng = self._rng
        ago = rng.randint(0, 30) * TICK
        self.driver.stop_all(
            rng.choice(self.world.keys),
            self.driver.now - ago if rng.random() < 0.5 else None,
            str(rng.randint(1, 200)) if rng.random() < 0.7 else None,
            self.world.route(),
        )

    def _clear(self) -> None:
        self.driver.clear(self._rng.choice(self.world.keys))

    # Settings and operation.

    def _configure(self) -> None:
        options = self.world.options() if self._rng.random() < 0.7 else None
        self.driver.configure(self._rng.choice(self.world.keys), options)

    def _set_lane(self) -> None:
        self.driver.set_lane(self._rng.choice(self.world.lanes), self.world.lane())

    def _set_ahead(self) -> None:
        lane, count = self._rng.choice(self.world.lanes), self._rng.choice((0, 1, 2, 3, 4, 4))
        self.driver.set_ahead(lane, count)

    def _clear_lane(self) -> None:
        self.driver.clear_lane(self._rng.choice(self.world.lanes))

    def _set_limits(self) -> None:
        self.driver.set_limits(self.world.limits())

    def _set_agent(self) -> None:
        self.driver.set_agent(self._rng.choice(self.world.agents), self.world.agent())

    def _drain(self) -> None:
        driver, dice = self.driver, self._rng.random()
        if not driver.mirror.draining:
            driver.drain(keep_waiting=dice < 0.7)
        elif not driver.mirror.closing and dice < 0.5:
            driver.cut_all()
        else:
            driver.reset()

    def _lose(self) -> None:
        keys = list(self.driver.mirror.sessions)
        if keys:
            self.driver.lose(tuple(self._rng.sample(keys, min(len(keys), 2))))

    def _release_idle(self) -> None:
        self.driver.release_idle()

    # The end of all.

    def settle(self) -> None:
        """Everything returns and time runs on, until nothing is left."""
        driver, mirror = self.driver, self.driver.mirror
        driver.pass_time(driver.now)
        if mirror.draining:
            driver.reset()
        driver.set_limits(Limits())
        for lane in tuple(mirror.lanes):
            driver.set_lane(lane, _OPEN_LANE)
        for agent in self.world.agents:
            settings = mirror.agent(agent).settings
            if settings.max_inflight == 0:
                driver.set_agent(agent, msgspec.structs.replace(settings, max_inflight=None))
        for _ in range(_MOST_SETTLING_STEPS):
            if not self._settle_one():
                break
        else:
            broken(Invariant.LOST_CALLER, f"{list(mirror.runs.values())} never end")
        driver.check(self._steps)
        driver.check_end()

    def _settle_one(self) -> bool:
        driver, mirror = self.driver, self.driver.mirror
        self._steps += 1
        driver.pass_time(driver.now)
        if driver.asked:
            driver.estimated(driver.asked[0], 0, 0)
        elif driver.late:
            driver.returns_late(driver.late[0], Done(Reply("late")))
        elif (seen := self._any_attempt()) is not None:
            self._settle_attempt(seen)
        elif driver.kernel.wake_at is not None:
            driver.pass_time(max(driver.now, driver.kernel.wake_at))
        elif mirror.runs:
            broken(Invariant.LOST_CALLER, f"{list(mirror.runs.values())} wait for nothing")
        else:
            return False
        return True

    def _settle_attempt(self, seen: Seen) -> None:
        if seen.state is State.ASSIGNED and seen.cut is None:
            self.driver.begins(seen)
        self.driver.returns(seen, Done(Reply("at last")))
        if self._steps % 16 == 0:
            self.driver.check(self._steps)

    def _any_attempt(self) -> Seen | None:
        """One that is at something, or shall end."""
        attempts = tuple(seen for seen in self.driver.mirror.attempts.values() if seen.at_work)
        return self._rng.choice(attempts) if attempts else None

    def _any_begun(self) -> Seen | None:
        """One that has a slot, and can do something."""
        attempts = tuple(seen for seen in self.driver.mirror.attempts.values() if not seen.ahead)
        return self._rng.choice(attempts) if attempts else None
