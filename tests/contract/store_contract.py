"""What every store must do (`ports.Store`), as one suite.

A store's own test module derives from `StoreContract` and says how to make the store. The suite
talks to the store as the engine does: admissions, batches of actions, reads. It never looks inside.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Concatenate, ParamSpec, TypeVar

import msgspec
import pytest

from headway import Outcome, Reply, Route, Settings, State
from headway.core.actions import (
    Action,
    CancelAttempt,
    Enqueue,
    Finish,
    Merge,
    Release,
    Remember,
    Start,
)
from headway.core.merge import merged
from headway.core.session import BLANK
from headway.model.run import (
    AgentName,
    LaneName,
    QueueOptions,
    Run,
    RunId,
    SessionKey,
    SessionMemory,
)
from headway.model.time import MINUTE, SECOND
from headway.model.words import Cut, Drop, Mode, Reason, Source
from headway.ports import Admission, Duplicate, Granted, RunQuery, Store
from headway.testing import VirtualClock

Given = ParamSpec("Given")
Suite = TypeVar("Suite", bound="StoreContract")

CHAT = Route("telegram", account="bot", peer="42", thread="7")
DONE = Outcome(State.DONE, reply=Reply("hello"))


def over_the_store(
    test: Callable[Concatenate[Suite, "World", Given], Coroutine[object, object, None]],
) -> Callable[Concatenate[Suite, Given], None]:
    """Run an async test of the suite with an open store, on a plain event loop."""

    def run(self: Suite, /, *args: Given.args, **kwargs: Given.kwargs) -> None:
        async def main() -> None:
            clock = VirtualClock()
            async with self.opened(self.settings, clock) as store:
                await test(self, World(store, clock), *args, **kwargs)

        asyncio.run(main())

    # Not functools.wraps: pytest would then look for a fixture of the name `world`.
    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


class World:
    """An open store, and short ways to say what an engine would tell it."""

    def __init__(self, store: Store, clock: VirtualClock) -> None:
        self.store = store
        self.clock = clock
        self._numbers = 0
        self._tickets = 0
        self._grants: dict[RunId, Granted] = {}

    def run(self, session: str = "s", **fields: object) -> Run:
        self._numbers += 1
        said: dict[str, object] = {
            "id": RunId(f"run-{self._numbers}"),
            "agent": AgentName("a"),
            "session": SessionKey(session),
            "source": Source.MESSAGE,
            "lane": LaneName("main"),
            "priority": 0,
            "submitted_at": self.clock.now(),
            **fields,
        }
        return Run(**said)  # type: ignore[arg-type]

    async def admit(self, session: str = "s", *, retry: bool = False, **fields: object) -> Run:
        """A new run that the store must take."""
        run = self.run(session, **fields)
        granted = await self._ask(run, retry=retry)
        assert isinstance(granted, Granted), granted
        self._grants[run.id] = granted
        return run

    async def try_admit(
        self, session: str = "s", *, retry: bool = False, **fields: object
    ) -> Admission:
        return await self._ask(self.run(session, **fields), retry=retry)

    async def _ask(self, run: Run, *, retry: bool) -> Admission:
        """A store in this process answers at once, a database later."""
        answer = self.store.admit(run, retry=retry)
        return answer if isinstance(answer, Granted | Duplicate) else await answer

    def granted(self, run: Run) -> Granted:
        return self._grants[run.id]

    def start(self, run: Run, attempt: int = 1) -> Start:
        self._tickets += 1
        return Start(run, self._tickets, attempt, self._grants[run.id].epoch, self.clock.now())

    def finish(self, run: Run, outcome: Outcome = DONE, attempt: int = 1) -> Finish:
        return Finish(run, outcome, attempt, self._grants[run.id].epoch, self.clock.now())

    def release(self, run: Run) -> Release:
        granted = self._grants[run.id]
        return Release(run.session, granted.epoch, granted.seq)

    async def record(self, *actions: Action) -> None:
        """Keep these, as a node that still owns all of its sessions."""
        assert list(await self.store.record(actions)) == []

    async def carry_through(self, run: Run, outcome: Outcome = DONE) -> None:
        await self.record(self.start(run))
        await self.record(self.finish(run, outcome))

    async def state(self, run: Run) -> State:
        view = await self.store.find(run.id)
        assert view is not None
        return view.state

    async def listed(self, **query: object) -> list[str]:
        page = await self.store.list(RunQuery(**query))  # type: ignore[arg-type]
        return [view.id for view in page.runs]


class StoreContract(ABC):
    """The suite. Derive from it, name the class `Test…`, and say how to open the store."""

    settings = Settings(retention=60 * MINUTE, task_retention=5 * MINUTE, retained_runs=1_000)

    @abstractmethod
    def opened(self, settings: Settings, clock: VirtualClock) -> AbstractAsyncContextManager[Store]:
        """A new, empty store, open; closed at the end of the block."""

    # Admission and ownership.

    @over_the_store
    async def test_d1_an_admitted_run_can_be_found_as_it_was_asked_for(self, world: World) -> None:
        run = await world.admit(
            text="hello — \N{GRINNING FACE}\n",
            route=CHAT,
            queue=QueueOptions(mode=Mode.COLLECT, cap=3, drop=Drop.SUMMARIZE, debounce=SECOND),
            overflow=("one", "two"),
            trace_id="trace",
            deadline_at=world.clock.now() + MINUTE,
        )
        view = await world.store.find(run.id)
        assert view is not None
        assert view.run == run
        assert (view.state, view.attempt, view.outcome) == (State.QUEUED, 0, None)
        assert (view.started_at, view.finished_at, view.cancelling) == (None, None, False)

    @over_the_store
    async def test_r1_a_run_due_later_is_kept_as_pending(self, world: World) -> None:
        due_at = world.clock.now() + MINUTE
        run = await world.admit(due_at=due_at)
        await world.record(Enqueue(run, State.PENDING, 0, world.granted(run).epoch, due_at))
        assert await world.state(run) is State.PENDING

    @over_the_store
    async def test_an_unknown_run_is_not_found(self, world: World) -> None:
        assert await world.store.find(RunId("nope")) is None

    @over_the_store
    async def test_runs_of_a_session_are_numbered_under_one_epoch(self, world: World) -> None:
        grants = [world.granted(await world.admit("s")) for _ in range(3)]
        assert len({granted.epoch for granted in grants}) == 1
        assert [granted.seq for granted in grants] == sorted({granted.seq for granted in grants})
        assert grants[0].memory is None

    @over_the_store
    async def test_a_released_session_comes_back_under_a_higher_epoch(self, world: World) -> None:
        """X-4: the epoch is the first half of the fence, so it never goes back."""
        epochs = []
        for _ in range(5):
            run = await world.admit("s")
            await world.carry_through(run)
            await world.record(world.release(run))
            epochs.append(world.granted(run).epoch)
        assert epochs == sorted(set(epochs))

    @over_the_store
    async def test_a_session_is_not_released_over_a_run_that_came_later(self, world: World) -> None:
        first = await world.admit("s")
        await world.carry_through(first)
        second = await world.admit("s")
        await world.record(world.release(first))
        third = await world.admit("s")
        assert world.granted(third).epoch == world.granted(second).epoch
        assert world.granted(third).seq > world.granted(second).seq

    @over_the_store
    async def test_admissions_at_once_are_all_kept_and_numbered_apart(self, world: World) -> None:
        runs = await asyncio.gather(*(world.admit("s") for _ in range(50)))
        assert len({world.granted(run).seq for run in runs}) == 50
        assert len(await world.listed(limit=100)) == 50

    @over_the_store
    async def test_recall_takes_a_session_without_a_run(self, world: World) -> None:
        granted = await world.store.recall(SessionKey("s"))
        assert granted.memory is None
        assert await world.listed() == []
        run = await world.admit("s")
        assert world.granted(run).epoch == granted.epoch
        again = await world.store.recall(SessionKey("s"))
        assert (again.epoch, again.seq) == (granted.epoch, world.granted(run).seq)

    # Dedupe (S-8).

    @over_the_store
    async def test_s8_the_same_message_is_the_first_run(self, world: World) -> None:
        first = await world.admit(message_id="7", route=CHAT)
        assert await world.try_admit(message_id="7", route=CHAT) == Duplicate(first.id)
        await world.carry_through(first)
        assert await world.try_admit(message_id="7", route=CHAT) == Duplicate(first.id)
        assert await world.listed() == [first.id]

    @pytest.mark.parametrize("field", ["channel", "account", "peer", "thread"])
    def test_s8_another_place_is_another_message(self, field: str) -> None:
        @over_the_store
        async def main(self: StoreContract, world: World) -> None:
            await world.admit(message_id="7", route=CHAT)
            elsewhere = msgspec.structs.replace(CHAT, **{field: "other"})
            await world.admit(message_id="7", route=elsewhere)

        main(self)

    @over_the_store
    async def test_s8_another_agent_or_id_is_another_message(self, world: World) -> None:
        await world.admit(message_id="7", route=CHAT)
        await world.admit(message_id="7", route=CHAT, agent=AgentName("b"))
        await world.admit(message_id="8", route=CHAT)

    @over_the_store
    async def test_s8_the_window_is_twenty_minutes(self, world: World) -> None:
        first = await world.admit(message_id="7", route=CHAT)
        await world.carry_through(first)
        world.clock.advance(20 * MINUTE - 1)
        assert await world.try_admit(message_id="7", route=CHAT) == Duplicate(first.id)
        world.clock.advance(1)
        await world.admit(message_id="7", route=CHAT)

    @over_the_store
    async def test_s8_of_two_deliveries_at_once_one_is_taken(self, world: World) -> None:
        answers = await asyncio.gather(
            *(world.try_admit(message_id="7", route=CHAT) for _ in range(10))
        )
        taken = [answer for answer in answers if isinstance(answer, Granted)]
        assert len(taken) == 1
        assert len({answer.run_id for answer in answers if isinstance(answer, Duplicate)}) == 1

    @pytest.mark.parametrize(
        ("outcome", "again"),
        [
            (DONE, False),
            (Outcome(State.FAILED, Reason.ERROR), False),
            (Outcome(State.CANCELLED, Reason.STOPPED), False),
            (Outcome(State.CANCELLED, Reason.STALE), False),
            (Outcome(State.REJECTED, Reason.QUEUE_FULL), True),
            (Outcome(State.REJECTED, Reason.REJECTED_BUSY), True),
            (Outcome(State.CANCELLED, Reason.DRAINING), True),
            (Outcome(State.FAILED, Reason.ORPHANED), True),
        ],
        ids=lambda value: str(value.reason) if isinstance(value, Outcome) else "",
    )
    def test_s8_only_a_message_that_nobody_dealt_with_can_be_redelivered(
        self, outcome: Outcome, again: bool
    ) -> None:
        @over_the_store
        async def main(self: StoreContract, world: World) -> None:
            first = await world.admit(message_id="7", route=CHAT)
            await world.record(world.finish(first, outcome, attempt=0))
            answer = await world.try_admit(message_id="7", route=CHAT)
            assert isinstance(answer, Granted) == again

        main(self)

    @over_the_store
    async def test_s8_every_part_of_a_merged_run_that_was_cut_can_be_redelivered(
        self, world: World
    ) -> None:
        parts = [await world.admit(message_id=number, route=CHAT) for number in ("1", "2")]
        whole = await self._merge(world, parts)
        cut = Outcome(State.CANCELLED, Reason.DRAINING)
        await world.record(world.start(whole), world.finish(whole, cut))
        for number in ("1", "2"):
            await world.admit(message_id=number, route=CHAT)

    # Idempotency keys (D-6).

    @over_the_store
    async def test_d6_a_key_is_unique_per_agent(self, world: World) -> None:
        first = await world.admit(idempotency_key="k")
        assert await world.try_admit("t", idempotency_key="k") == Duplicate(first.id)
        await world.admit(idempotency_key="k", agent=AgentName("b"))
        await world.admit(idempotency_key="l")

    @pytest.mark.parametrize(
        "outcome",
        [
            Outcome(State.FAILED, Reason.ERROR),
            Outcome(State.CANCELLED, Reason.STOPPED),
        ],
        ids=lambda outcome: outcome.reason,
    )
    def test_d6_a_key_that_did_not_succeed_is_replayed_or_retried(self, outcome: Outcome) -> None:
        @over_the_store
        async def main(self: StoreContract, world: World) -> None:
            first = await world.admit(idempotency_key="k")
            await world.carry_through(first, outcome)
            assert await world.try_admit(idempotency_key="k") == Duplicate(first.id)
            second = await world.admit(idempotency_key="k", retry=True)
            assert await world.try_admit(idempotency_key="k") == Duplicate(second.id)
            assert await world.try_admit(idempotency_key="k", retry=True) == Duplicate(second.id)

        main(self)

    @over_the_store
    async def test_d6_a_rejected_run_gives_its_key_back(self, world: World) -> None:
        first = await world.admit(idempotency_key="k")
        await world.carry_through(first, Outcome(State.REJECTED, Reason.QUEUE_FULL))
        second = await world.admit(idempotency_key="k")
        assert second.id != first.id

    @over_the_store
    async def test_d6_a_key_that_runs_or_is_done_is_never_retried(self, world: World) -> None:
        first = await world.admit(idempotency_key="k")
        assert await world.try_admit(idempotency_key="k", retry=True) == Duplicate(first.id)
        await world.record(world.start(first))
        assert await world.try_admit(idempotency_key="k", retry=True) == Duplicate(first.id)
        await world.record(world.finish(first))
        assert await world.try_admit(idempotency_key="k", retry=True) == Duplicate(first.id)

    @over_the_store
    async def test_d6_a_key_outlives_the_short_memory_of_task_results(self, world: World) -> None:
        first = await world.admit(idempotency_key="k", source=Source.TASK)
        await world.carry_through(first)
        world.clock.advance(10 * MINUTE)
        await world.carry_through(await world.admit("t", source=Source.TASK))
        assert await world.try_admit(idempotency_key="k") == Duplicate(first.id)
        view = await world.store.find(first.id)
        assert view is not None
        assert view.outcome == DONE

    @over_the_store
    async def test_d6_keys_are_kept_for_a_day(self, world: World) -> None:
        first = await world.admit(idempotency_key="k")
        await world.carry_through(first)
        world.clock.advance(self.settings.idempotency)
        await world.admit(idempotency_key="k")

    # What was decided.

    @over_the_store
    async def test_a_started_run_is_running_with_its_attempt(self, world: World) -> None:
        run = await world.admit()
        world.clock.advance(SECOND)
        await world.record(world.start(run))
        view = await world.store.find(run.id)
        assert view is not None
        assert (view.state, view.attempt, view.started_at) == (
            State.RUNNING,
            1,
            world.clock.now(),
        )

    @over_the_store
    async def test_what_a_start_adds_to_a_run_is_kept(self, world: World) -> None:
        run = await world.admit(text="x")
        noted = msgspec.structs.replace(run, overflow=("dropped",))
        await world.record(world.start(noted))
        view = await world.store.find(run.id)
        assert view is not None
        assert view.run.overflow == ("dropped",)

    @pytest.mark.parametrize(
        "outcome",
        [
            Outcome(State.DONE, reply=Reply("text", data={"k": [1, None, 2.5, "é"]})),
            Outcome(State.FAILED, Reason.ERROR, error="ValueError: x"),
            Outcome(State.CANCELLED, Reason.MERGED, into="run-9"),
            Outcome(State.REJECTED, Reason.QUEUE_FULL),
        ],
        ids=lambda outcome: outcome.state,
    )
    def test_r2_an_outcome_is_kept_whole(self, outcome: Outcome) -> None:
        @over_the_store
        async def main(self: StoreContract, world: World) -> None:
            run = await world.admit()
            world.clock.advance(SECOND)
            await world.record(world.finish(run, outcome, attempt=2))
            view = await world.store.find(run.id)
            assert view is not None
            assert (view.state, view.outcome, view.attempt) == (outcome.state, outcome, 2)
            assert view.finished_at == world.clock.now()

        main(self)

    @over_the_store
    async def test_t5_a_run_that_is_being_cancelled_says_so_until_it_has_ended(
        self, world: World
    ) -> None:
        run = await world.admit()
        start = world.start(run)
        await world.record(start)
        await world.record(CancelAttempt(run, start.ticket, Cut.STOPPED))
        view = await world.store.find(run.id)
        assert view is not None
        assert (view.state, view.cancelling) == (State.RUNNING, True)
        await world.record(world.finish(run, Outcome(State.CANCELLED, Reason.STOPPED)))
        view = await world.store.find(run.id)
        assert view is not None
        assert (view.state, view.cancelling) == (State.CANCELLED, False)

    @over_the_store
    async def test_r5_a_run_that_is_queued_again_keeps_its_attempts(self, world: World) -> None:
        run = await world.admit()
        epoch = world.granted(run).epoch
        await world.record(world.start(run))
        until = world.clock.now() + MINUTE
        await world.record(Enqueue(run, State.PENDING, 1, epoch, until, None, "ValueError"))
        assert await world.state(run) is State.PENDING
        await world.record(Enqueue(run, State.QUEUED, 1, epoch))
        view = await world.store.find(run.id)
        assert view is not None
        assert (view.state, view.attempt, view.cancelling) == (State.QUEUED, 1, False)
        await world.record(world.start(run, attempt=2))
        view = await world.store.find(run.id)
        assert view is not None
        assert (view.state, view.attempt) == (State.RUNNING, 2)

    @over_the_store
    async def test_one_batch_is_kept_in_its_order(self, world: World) -> None:
        first, second = await world.admit("s"), await world.admit("s")
        await world.record(
            world.start(first),
            world.finish(first),
            world.start(second),
            world.finish(second, Outcome(State.FAILED, Reason.ERROR)),
            world.release(second),
        )
        assert await world.state(first) is State.DONE
        assert await world.state(second) is State.FAILED
        third = await world.admit("s")
        assert world.granted(third).epoch > world.granted(second).epoch

    @over_the_store
    async def test_an_empty_batch_is_nothing(self, world: World) -> None:
        await world.record()

    @over_the_store
    async def test_s7_a_merged_run_is_a_run_like_any_other(self, world: World) -> None:
        parts = [await world.admit(text=text, route=CHAT) for text in ("one", "two")]
        whole = await self._merge(world, parts)
        view = await world.store.find(whole.id)
        assert view is not None
        assert (view.run, view.state) == (whole, State.QUEUED)
        assert view.run.text == "one\ntwo"
        for part in parts:
            part_view = await world.store.find(part.id)
            assert part_view is not None
            assert part_view.outcome is not None
            assert part_view.outcome.into == whole.id
        assert whole.id in await world.listed()

    # What a session remembers.

    @over_the_store
    async def test_s5_what_a_session_remembers_outlives_its_release(self, world: World) -> None:
        memory = SessionMemory(
            options=QueueOptions(mode=Mode.REJECT, cap=3),
            cutoff_at=world.clock.now(),
            cutoff_id=100,
            cutoff_channel="telegram",
            overflow=("one", "two"),
            overflow_missed=5,
        )
        run = await world.admit("s")
        await world.carry_through(run)
        epoch = world.granted(run).epoch
        await world.record(Remember(SessionKey("s"), memory, epoch), world.release(run))
        assert world.granted(await world.admit("s")).memory == memory
        assert (await world.store.recall(SessionKey("s"))).memory == memory
        assert world.granted(await world.admit("t")).memory is None

    @over_the_store
    async def test_s5_a_later_memory_takes_the_place_of_an_earlier_one(self, world: World) -> None:
        granted = await world.store.recall(SessionKey("s"))
        key = SessionKey("s")
        await world.record(
            Remember(key, SessionMemory(overflow=("x",)), granted.epoch),
            Remember(key, SessionMemory(overflow=("x", "y")), granted.epoch),
        )
        memory = (await world.store.recall(key)).memory
        assert memory is not None
        assert memory.overflow == ("x", "y")
        await world.record(Remember(key, BLANK, granted.epoch))
        assert (await world.store.recall(key)).memory in (None, BLANK)

    # Reading.

    @over_the_store
    async def test_lists_are_newest_first_and_paged(self, world: World) -> None:
        ids = [(await world.admit(f"s{number}")).id for number in range(7)]
        listed: list[str] = []
        cursor: str | None = None
        for size in (3, 3, 1):
            page = await world.store.list(RunQuery(limit=3, cursor=cursor))
            assert len(page.runs) == size
            listed += [view.id for view in page.runs]
            cursor = page.cursor
        assert listed == ids[::-1]
        assert cursor is None

    @over_the_store
    async def test_a_full_last_page_says_that_it_is_the_last(self, world: World) -> None:
        for _ in range(3):
            await world.admit()
        assert (await world.store.list(RunQuery(limit=3))).cursor is None

    @over_the_store
    async def test_runs_that_come_while_paging_neither_repeat_nor_hide_others(
        self, world: World
    ) -> None:
        ids = [(await world.admit()).id for _ in range(4)]
        page = await world.store.list(RunQuery(limit=2))
        await world.admit()
        rest = await world.listed(limit=10, cursor=page.cursor)
        assert [view.id for view in page.runs] + rest == ids[::-1]

    @over_the_store
    async def test_f6_a_page_goes_on_although_the_runs_around_its_cursor_were_forgotten(
        self, world: World
    ) -> None:
        old = await world.admit("old")
        tasks = [await world.admit(f"t{number}", source=Source.TASK) for number in range(2)]
        new = await world.admit("new")
        for task in tasks:
            await world.carry_through(task)
        page = await world.store.list(RunQuery(limit=2))
        assert [view.id for view in page.runs] == [new.id, tasks[1].id]
        world.clock.advance(10 * MINUTE)
        await world.carry_through(await world.admit("t", source=Source.TASK))
        for task in tasks:
            assert await world.store.find(task.id) is None
        assert await world.listed(limit=10, cursor=page.cursor) == [old.id]

    @over_the_store
    async def test_lists_can_be_narrowed(self, world: World) -> None:
        ours = await world.admit("s")
        theirs = await world.admit("s", agent=AgentName("b"))
        done = await world.admit("t")
        await world.carry_through(done)
        assert await world.listed(agent="a") == [done.id, ours.id]
        assert await world.listed(session="s") == [theirs.id, ours.id]
        assert await world.listed(state=State.DONE) == [done.id]
        assert await world.listed(state=State.QUEUED, agent="b") == [theirs.id]
        assert await world.listed(agent="nobody") == []

    @over_the_store
    async def test_a_view_does_not_change_in_the_readers_hands(self, world: World) -> None:
        run = await world.admit()
        before = await world.store.find(run.id)
        await world.carry_through(run)
        assert before is not None
        assert before.state is State.QUEUED

    # Forgetting.

    @over_the_store
    async def test_d8_finished_runs_are_forgotten_after_their_retention(self, world: World) -> None:
        message = await world.admit("m")
        task = await world.admit("t", source=Source.TASK)
        waiting = await world.admit("w")
        for run in (message, task):
            await world.carry_through(run)
        world.clock.advance(6 * MINUTE)
        await self._touch(world)
        assert await world.store.find(task.id) is None
        assert await world.store.find(message.id) is not None
        world.clock.advance(60 * MINUTE)
        await self._touch(world)
        assert await world.store.find(message.id) is None
        assert await world.state(waiting) is State.QUEUED, "what has not ended is never forgotten"

    async def _touch(self, world: World) -> None:
        """Let the store notice that time has passed: one message and one task come and go."""
        for source in (Source.MESSAGE, Source.TASK):
            await world.carry_through(await world.admit(f"touch-{source}", source=source))

    async def _merge(self, world: World, parts: list[Run]) -> Run:
        whole = merged(parts)
        granted = world.granted(parts[0])
        world._grants[whole.id] = granted
        taken_over = Outcome(State.CANCELLED, Reason.MERGED, into=whole.id)
        await world.record(
            Merge(whole, granted.epoch),
            *(world.finish(part, taken_over, attempt=0) for part in parts),
        )
        return whole
