"""The scribe: stores what the kernel decided, then has it carried out.

Everything else only tells the kernel and wakes the scribe. So what happens in one turn of the event loop is stored
as one batch, and nothing is acted on before it is stored. Where the store can take several batches at once the
scribe has as many hands, and uses them when there is much to store: what a hand stores of a session no other hand
overtakes, so the actions of each session are stored in their order, while batches of other sessions are under way.
While the store cannot be reached a batch is kept and tried again (D-9): nothing is decided anew or forgotten.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence

from headway.core.actions import Action, Release, session_of
from headway.core.kernel import Kernel
from headway.model.errors import InvariantBroken, NotRunning, Unavailable
from headway.model.run import SessionKey
from headway.model.time import SECOND, Instant
from headway.ports import Clock, Recorded, Store
from headway.runtime.attempts import Attempts
from headway.runtime.clock import Meter, stopwatch_s
from headway.runtime.outage import Outage
from headway.runtime.pace import Pace

_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0
_WORTH_ANOTHER_HAND = 120
"""A batch costs something whatever is in it: only one with so many actions is worth being split."""
_WORTH_A_BATCH = 40
"""With so many actions a hand begins while another one is at work; fewer wait, and go with what comes then."""


class Scribe:
    """Stores and has carried out, one batch after the other, until it is stopped."""

    def __init__(
        self,
        kernel: Kernel,
        store: Store,
        clock: Clock,
        attempts: Attempts,
        outage: Outage,
        *,
        prepare: Callable[[list[Action]], list[Action]],
        carry_out: Callable[[Sequence[Action]], None],
        recorded: Callable[[Recorded, Sequence[Action]], Sequence[Action]],
        rested: Callable[[], None],
        fail: Callable[[BaseException], None],
        asking: Callable[[], object],
    ) -> None:
        self._kernel = kernel
        self._store = store
        self._clock = clock
        self._attempts = attempts
        self._outage = outage
        self._prepare = prepare
        self._carry_out = carry_out
        self._recorded = recorded
        self._rested = rested
        self._fail = fail
        self._asking = asking
        self._task: asyncio.Task[None] | None = None
        self.running = False
        self.nudge: asyncio.Future[None] | None = None
        """What it sleeps on, while it does; then it must be woken."""
        self._alarm: asyncio.TimerHandle | None = None
        self._alarm_at: Instant | None = None
        self._hands: list[_Hand] = []
        self._pending: list[Action] = []
        """What no hand has taken yet."""
        self._resting: list[asyncio.Future[None]] = []
        self._kept_idle = 0
        self._pace = Pace(kernel)
        self.releasing: dict[SessionKey, tuple[int, int]] = {}
        """Sessions that the kernel has given back and the store not yet: epoch, and what was seen of them.

        0 is seen of a session with work in it. Until the store has answered nothing is asked about them: what was
        decided before is not stored yet either.
        """
        self.kept: dict[SessionKey, int] = {}
        """Sessions that the store did not take back, and what was seen of them: they are to be read again."""
        self.given_back: dict[SessionKey, int] = {}
        """Sessions that left the kernel, and under which epoch, since `Claims` asked the store for something."""
        self.away: Unavailable | None = None
        """Why the store cannot be reached, while it cannot."""
        self.meter: Meter | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        self.running = True
        self._task = self._begin(loop, self._write(loop))
        if self._store.durable or self._store.writers > 1:
            self._hands = [_Hand() for _ in range(self._store.writers)]
            for hand in self._hands:
                hand.task = self._begin(loop, self._write_with(hand, loop))

    def _begin(
        self, loop: asyncio.AbstractEventLoop, work: Coroutine[object, object, None]
    ) -> asyncio.Task[None]:
        task = loop.create_task(work, name="headway-scribe")
        task.add_done_callback(self._ended)
        return task

    async def stop(self) -> None:
        """End, with what was stored so far."""
        tasks = self._cancel()
        if tasks:
            await asyncio.wait(tasks)

    def break_off(self) -> None:
        """Something is wrong: end at once, and let nobody wait for ever."""
        self._cancel()
        for waiter in self._resting:
            if not waiter.done():
                waiter.set_exception(NotRunning())

    def forget(self) -> None:
        """Nothing that was decided counts any more."""
        self._kernel.take_actions()
        self._pending.clear()
        self.releasing.clear()
        self.kept.clear()

    def _cancel(self) -> list[asyncio.Task[None]]:
        self.running = False
        task, self._task = self._task, None
        tasks = [hand.task for hand in self._hands if hand.task is not None]
        if task is not None:
            tasks.append(task)
        for running in tasks:
            running.cancel()
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = self._alarm_at = None
        return tasks

    def wake(self) -> None:
        nudge = self.nudge
        if nudge is not None:
            self.nudge = None
            if not nudge.done():
                nudge.set_result(None)

    async def rest(self, until: float | None) -> None:
        """Wait until no attempt runs here and all that was decided is stored and carried out, or until then."""
        loop = asyncio.get_running_loop()
        stage = self._kernel.stage
        while (
            self._attempts
            or stage.attempts
            or stage.actions
            or self.nudge is None
            or self._busy
            or self._asking()
        ):
            rested: asyncio.Future[None] = loop.create_future()
            self._resting.append(rested)
            self.wake()
            timer = None if until is None else loop.call_at(until, _release, [rested])
            try:
                await rested
            finally:
                if timer is not None:
                    timer.cancel()
            if until is not None and loop.time() >= until:
                return

    @property
    def _busy(self) -> bool:
        return bool(self._pending) or any(hand.storing for hand in self._hands)

    async def _write(self, loop: asyncio.AbstractEventLoop) -> None:
        """Store what was decided, carry it out, sleep until there is more."""
        kernel = self._kernel
        while True:
            if kernel.stage.called:
                self._attempts.begin_called()
            if self._hands:
                if self._take_over():
                    continue
            elif actions := self._prepare(kernel.take_actions()):
                await self._keep(actions)
                continue
            if self._many_idle():
                continue
            self._rested()
            if kernel.stage.actions:
                continue
            self._set_alarm(loop)
            self.nudge = loop.create_future()
            busy = self._attempts or kernel.stage.attempts or self._busy or self._asking()
            if self._resting and not busy:
                resting, self._resting = self._resting, []
                _release(resting)
            await self.nudge

    def _take_over(self) -> bool:
        """Give the hands what the kernel has decided. False: there was nothing."""
        actions = self._prepare(self._kernel.take_actions())
        if actions:
            if self._store.durable:
                self._note_releases(actions)
            self._pending += actions
            self._wake_a_hand()
        return bool(actions)

    def _wake_a_hand(self) -> None:
        for hand in self._hands:
            if hand.nudge is not None:
                hand.wake()
                return

    async def _write_with(self, hand: "_Hand", loop: asyncio.AbstractEventLoop) -> None:
        """Store and have carried out what one hand may take, batch by batch."""
        while True:
            if actions := self._next_batch():
                hand.storing = {action.epoch for action in actions}
                hand.size = len(actions)
                began_at = self._clock.now()
                await self._keep(actions)
                self._pace.stored(began_at, self._clock.now())
                # What has just begun may end at once: that goes into the next batch, not into one of its own.
                await asyncio.sleep(0)
                hand.storing, hand.size = set(), 0
                self._take_over()
                self.wake()
            else:
                hand.nudge = loop.create_future()
                await hand.nudge

    def _next_batch(self) -> list[Action]:
        """What a hand that is free shall store now; nothing, if that had better wait for another hand."""
        batch = pending = self._pending
        under_way = [hand.storing for hand in self._hands if hand.storing]
        if under_way:
            if len(pending) < _WORTH_A_BATCH:
                return []
            # One epoch is one session's: of those that another hand has, what comes next must wait.
            taken = frozenset().union(*under_way)
            batch = [action for action in pending if action.epoch not in taken]
            if len(batch) < _WORTH_A_BATCH:
                return []
        if len(self._hands) > 1 and len(batch) >= _WORTH_ANOTHER_HAND:
            # All hands about the same: then one puts together what comes next while another one is waited for.
            share = (len(pending) + sum(hand.size for hand in self._hands)) // len(self._hands)
            mine = {action.epoch for action in batch[:share]}
            batch = [action for action in batch if action.epoch in mine]
            self._wake_a_hand()
        if len(batch) == len(pending):
            self._pending = []
        else:
            mine = {action.epoch for action in batch}
            self._pending = [action for action in pending if action.epoch not in mine]
        return batch

    async def _keep(self, actions: Sequence[Action]) -> None:
        recorded = await self._record(actions)
        if self._store.durable:
            self._note_released(actions, recorded)
            actions = self._recorded(recorded, actions)
        self._carry_out(actions)

    async def _record(self, actions: Sequence[Action]) -> Recorded:
        """Try until the store has taken it. What it refuses because of ownership is its answer, not a failure."""
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                recorded = await self._measured(actions)
            except Unavailable as away:
                self.away = away
                self._outage.noticed(self, str(away))
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            else:
                if self.away is not None:
                    self.away = None
                    self._outage.over(self)
                return recorded

    async def _measured(self, actions: Sequence[Action]) -> Recorded:
        meter = self.meter
        if meter is None:
            return await self._store.record(actions)
        began_s = stopwatch_s()
        recorded = await self._store.record(actions)
        meter("record", stopwatch_s() - began_s)
        return recorded

    def _note_releases(self, actions: Sequence[Action]) -> None:
        for action in actions:
            if type(action) is Release:
                self.releasing.setdefault(action.session, (action.epoch, action.seen))
                self.given_back[action.session] = action.epoch

    def _note_released(self, actions: Sequence[Action], recorded: Recorded) -> None:
        """What the store has not taken back stays with us: it is read again until it was taken in."""
        for action in actions:
            if type(action) is Release:
                key = action.session
                epoch, seen = self.releasing.get(key, (0, 0))
                if epoch == action.epoch and not (key in recorded.kept and self._releases(key)):
                    del self.releasing[key]
                    if key in recorded.kept and key not in self._kernel.stage.sessions:
                        self.kept[key] = seen

    def _releases(self, key: SessionKey) -> bool:
        """Whether it was taken in and given back once more meanwhile: then the answer to that counts."""
        decided = (*self._pending, *self._kernel.stage.actions)
        return any(type(action) is Release and action.session == key for action in decided)

    def _many_idle(self) -> bool:
        """Give idle sessions back once there are many: surely all beyond the number of live runs are."""
        stage = self._kernel.stage
        surely_idle = len(stage.sessions) - len(stage.runs)
        self._kept_idle = min(self._kept_idle, surely_idle)
        if surely_idle <= self._kept_idle + stage.settings.idle_sessions:
            return False
        self.release_idle()
        self._kept_idle = len(stage.sessions) - len(stage.runs)
        return True

    def release_idle(self) -> None:
        self._kernel.release_idle()
        if self._store.durable:
            self._note_releases(self._kernel.stage.actions)

    def releases(self, release: Release) -> None:
        """A session with work in it is given back: if the store keeps it, all of it is read again."""
        self.releasing[release.session] = (release.epoch, 0)
        self.given_back[release.session] = release.epoch

    # Time.

    def _set_alarm(self, loop: asyncio.AbstractEventLoop) -> None:
        at = self._kernel.wake_at
        if at == self._alarm_at:
            return
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        self._alarm_at = at
        if at is not None:
            delay_s = max(0, at - self._clock.now()) / SECOND
            self._alarm = loop.call_later(delay_s, self._ring)

    def _ring(self) -> None:
        self._alarm = self._alarm_at = None
        try:
            self._kernel.time_passed(self._clock.now())
        except Exception as error:  # noqa: BLE001 - the kernel is wrong: nobody shall wait for ever
            self._fail(error)
        self.wake()

    def _ended(self, task: asyncio.Task[None]) -> None:
        """It ends only when it is told to. If it broke, nobody shall wait for ever."""
        if not task.cancelled() and self._task is not None:
            self._fail(task.exception() or InvariantBroken("the scribe ended"))


class _Hand:
    """Stores one batch after the other."""

    def __init__(self) -> None:
        self.storing: set[int] = set()
        """The epochs under which it stores something just now."""
        self.size = 0
        """And how many actions that is."""
        self.nudge: asyncio.Future[None] | None = None
        self.task: asyncio.Task[None] | None = None

    def wake(self) -> None:
        nudge, self.nudge = self.nudge, None
        if nudge is not None and not nudge.done():
            nudge.set_result(None)


def without_lost(
    actions: Sequence[Action], lost: frozenset[tuple[SessionKey, int]]
) -> list[Action]:
    """The actions without those of sessions that are not ours any more."""
    keys = {key for key, _ in lost}
    return [
        action
        for action in actions
        if (key := session_of(action)) not in keys or (key, action.epoch) not in lost
    ]


def _release(waiters: list[asyncio.Future[None]]) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)
