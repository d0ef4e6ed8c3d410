"""What a store must do whose runs survive the process: the rest of what one node sees of it."""

import asyncio

import pytest

from headway import Outcome, State
from headway.core.actions import (
    Action,
    CancelAttempt,
    Deliver,
    Enqueue,
    Merge,
    Release,
    Remember,
    Respond,
    Steer,
)
from headway.core.merge import merged
from headway.model.errors import HeadwayError
from headway.model.places import Answer, Configure, Order, Place, Standing, Stop, StopAll
from headway.model.run import (
    AgentName,
    LaneName,
    QueueOptions,
    Run,
    SessionKey,
    SessionMemory,
)
from headway.model.settings import Limits
from headway.model.time import DAY, MINUTE, SECOND
from headway.model.words import Cut, Mode, Reason, Rule, Source
from headway.ports import Duplicate, Elsewhere, Granted, Recorded, TurnedAway
from tests.contract.store_contract import StoreContract
from tests.contract.world import (
    CHAT,
    DONE,
    MAIN,
    ODD,
    STOPPED,
    World,
    ask,
    over_the_store,
    view_of,
)

STANDING = Standing(
    after=-3,
    held=Rule.RETRY,
    until=7,
    latest_at=8,
    quiet_until=9,
    collect=True,
    interrupts=True,
    begun=True,
    retries=2,
    limited=1,
)


class DurableContract(StoreContract):
    """Derive from it, name the class `Test…`, and say how to make the store."""

    @over_the_store
    async def test_d1_it_promises_to_keep_what_it_took(self, world: World) -> None:
        assert world.store.durable

    # A restart: all that was acknowledged is there.

    @over_the_store
    async def test_d1_a_waiting_run_is_there_after_a_restart(self, world: World) -> None:
        run = await world.admit(text=ODD, route=CHAT, queue=QueueOptions(mode=Mode.COLLECT))
        await world.restart()
        assert await world.listed() == [run.id]
        holding = await world.claim_one()
        assert holding.places == (Place(run, 1),)
        assert (holding.seen, holding.memory, holding.orders) == (1, None, ())
        assert holding.epoch > world.granted(run).epoch

    @over_the_store
    async def test_d1_everything_that_was_answered_for_is_there(self, world: World) -> None:
        async def one(number: int) -> Run:
            return await world.admit(f"s{number % 7}")

        runs = await asyncio.gather(*(one(number) for number in range(50)))
        await world.restart()
        assert set(await world.listed(limit=100)) == {run.id for run in runs}
        holdings = await world.claim_all()
        for key, holding in holdings.items():
            asked = [run for run in runs if run.session == key]
            assert [place.run for place in holding.places] == asked
            assert [place.seq for place in holding.places] == list(range(1, len(asked) + 1))
        assert sum(len(holding.places) for holding in holdings.values()) == 50

    @over_the_store
    async def test_d7_a_running_run_is_an_orphan_after_a_restart(self, world: World) -> None:
        runs, waits = await world.admit(), await world.admit()
        began_at = world.clock.advance(SECOND)
        await world.record(world.start(runs))
        world.clock.advance(SECOND)
        await world.restart()
        assert await world.state(runs) is State.QUEUED
        holding = await world.claim_one()
        assert holding.places == (
            Place(runs, 1, attempt=1, orphaned=True, started_at=began_at),
            Place(waits, 2),
        )

    @over_the_store
    async def test_d7_an_orphan_that_starts_again_is_none(self, world: World) -> None:
        run = await world.admit()
        await world.record(world.start(run))
        await world.restart()
        holding = await world.claim_one()
        world.hold(run, Granted(holding.epoch, holding.seen))
        began_at = world.clock.advance(SECOND)
        await world.record(world.start(run, attempt=2))
        view = await view_of(world.store, run)
        assert (view.state, view.attempt, view.started_at) == (State.RUNNING, 2, began_at)
        back = Enqueue(
            run, State.QUEUED, 2, holding.epoch, cut=Cut.DRAINED, standing=STANDING, ended=True
        )
        await world.record(back)
        await world.restart()
        (place,) = (await world.claim_one()).places
        assert (place.attempt, place.orphaned, place.standing) == (2, False, STANDING)

    @over_the_store
    async def test_r2_outcomes_are_there_after_a_restart(self, world: World) -> None:
        run = await world.admit()
        await world.carry_through(run)
        await world.restart()
        assert await world.store.outcomes([run.id]) == {run.id: DONE}
        view = await view_of(world.store, run)
        assert (view.run, view.state, view.outcome) == (run, State.DONE, DONE)
        assert await world.claim_all() == {}, "what has ended is not done again"

    @over_the_store
    async def test_s8_dedupe_and_keys_hold_across_a_restart(self, world: World) -> None:
        message = await world.admit(message_id="7", route=CHAT)
        task = await world.admit("t", idempotency_key="k")
        await world.carry_through(task)
        await world.restart()
        assert await world.try_admit(message_id="7", route=CHAT) == Duplicate(message.id)
        assert await world.try_admit(idempotency_key="k") == Duplicate(task.id)

    @over_the_store
    async def test_s8_an_orphan_can_be_redelivered(self, world: World) -> None:
        first = await world.admit(message_id="7", route=CHAT)
        await world.record(world.start(first))
        await world.restart()
        holding = await world.claim_one()
        world.hold(first, Granted(holding.epoch, holding.seen))
        await world.record(world.finish(first, Outcome(State.FAILED, Reason.ORPHANED)))
        await world.admit(message_id="7", route=CHAT)

    @over_the_store
    async def test_s5_memories_and_the_outbox_are_there_after_a_restart(self, world: World) -> None:
        memory = SessionMemory(options=QueueOptions(cap=3), overflow=("one",))
        run = await world.admit()
        said = world.delivery(run)
        await world.record(
            world.start(run),
            world.finish(run),
            Deliver(said),
            Remember(run.session, memory, world.granted(run).epoch),
        )
        await world.restart()
        assert await world.store.memory_of(run.session) == memory
        now = world.clock.now()
        due = await world.store.take_deliveries(["telegram"], 10, now, now + MINUTE)
        assert list(due) == [said]
        assert world.granted(await world.admit()).memory == memory

    @over_the_store
    async def test_n5_epochs_go_on_after_a_restart(self, world: World) -> None:
        """X-4: a fence that an old process gave away is never given again."""
        epochs = []
        for _ in range(3):
            run = await world.admit()
            epochs.append(world.granted(run).epoch)
            await world.carry_through(run)
            await world.record(world.release(run))
            await world.restart()
        assert epochs == sorted(set(epochs))

    @over_the_store
    async def test_n13_an_order_without_an_answer_is_there_after_a_restart(
        self, world: World
    ) -> None:
        run = await world.admit()
        command = StopAll(sent_at=5, message_id="7", route=CHAT)
        granted = await world.order(command)
        await world.restart()
        assert await world.store.answers(["o-1"]) == {}
        holding = await world.claim_one()
        order = Order("o-1", run.session, command, granted.seq)
        assert holding.orders == (order,)
        assert holding.seen == granted.seq
        answer = Answer(waiting=1)
        world.hold(run, Granted(holding.epoch, holding.seen))
        await world.record(
            world.finish(run, STOPPED, attempt=0), Respond(order, answer, holding.epoch)
        )
        assert await world.store.answers(["o-1", "o-9"]) == {"o-1": answer}
        await world.restart()
        assert await world.store.answers(["o-1"]) == {"o-1": answer}
        assert await world.claim_all() == {}

    @over_the_store
    async def test_l8_slots_of_a_dead_process_are_free_again(self, world: World) -> None:
        assert await world.store.hold_slots(MAIN, 5, 5) == 5
        await world.restart()
        assert await world.store.hold_slots(MAIN, 5, 5) == 5

    @over_the_store
    async def test_n1_the_old_incarnation_is_known_to_be_gone(self, world: World) -> None:
        before = world.node
        await world.admit()
        await world.restart()
        assert world.node > before
        (old,) = [view for view in await world.store.nodes() if view.id == before]
        assert old.ended
        assert (old.sessions, old.running) == (0, 0)
        assert (await world.store.renew()).peers == ()

    @over_the_store
    async def test_l5_a_node_that_left_in_good_order_leaves_what_waits(self, world: World) -> None:
        run = await world.admit()
        await world.store.retire()
        assert (await world.myself()).ended == "retired"
        await world.restart()
        assert (await world.claim_one()).places == (Place(run, 1),)

    # What a successor is given to decide alike (N-12).

    @over_the_store
    async def test_n12_where_a_run_stands_is_kept(self, world: World) -> None:
        run, other = await world.admit(), await world.admit()
        epoch = world.granted(run).epoch
        first = Standing(after=2, held=Rule.DEBOUNCE, until=5)
        await world.record(Enqueue(run, State.PENDING, 0, epoch, standing=first))
        await world.record(Enqueue(run, State.QUEUED, 0, epoch, standing=STANDING))
        await world.restart()
        assert (await world.claim_one()).places == (
            Place(run, 1, standing=STANDING),
            Place(other, 2),
        )

    @over_the_store
    async def test_n12_a_merge_is_frozen(self, world: World) -> None:
        parts = [await world.admit(text=text, route=CHAT) for text in ("one", "two")]
        whole = await world.merge(parts)
        await world.restart()
        (place,) = (await world.claim_one()).places
        assert (place.run, place.seq) == (whole, world.granted(parts[-1]).seq)

    @over_the_store
    async def test_x2_a_steered_message_whose_turn_was_cut_off_is_queued(
        self, world: World
    ) -> None:
        turn, message = await world.admit(), await world.admit()
        start = world.start(turn)
        await world.record(start, Steer(message, start.ticket, start.epoch))
        await world.restart()
        holding = await world.claim_one()
        assert [place.run for place in holding.places] == [turn, message]
        assert [place.orphaned for place in holding.places] == [True, False]
        assert holding.places[1].standing == Standing(after=2), "its mode is not applied again"

    @over_the_store
    async def test_n12_attempts_that_counted_are_counted(self, world: World) -> None:
        run = await world.admit()
        epoch = world.granted(run).epoch
        for attempt in (1, 2, 3):
            await world.record(world.start(run, attempt))
            await world.record(
                Enqueue(run, State.PENDING, attempt, epoch, standing=STANDING, ended=True)
            )
        await world.restart()
        (place,) = (await world.claim_one()).places
        assert (place.attempt, place.orphaned) == (3, False)

    @pytest.mark.parametrize("cut", [Cut.STOPPED, Cut.SUPERSEDED, Cut.DEADLINE, Cut.TIMED_OUT])
    def test_x3_a_stop_that_was_answered_is_not_forgotten(self, cut: Cut) -> None:
        @over_the_store
        async def main(self: DurableContract, world: World) -> None:
            run = await world.admit()
            start = world.start(run)
            await world.record(start, CancelAttempt(run, start.ticket, cut, start.epoch))
            await world.restart()
            (place,) = (await world.claim_one()).places
            assert (place.orphaned, place.cut) == (True, cut)

        main(self)

    @over_the_store
    async def test_x3_a_run_that_begins_or_waits_again_is_not_being_stopped(
        self, world: World
    ) -> None:
        again, waits = await world.admit("again"), await world.admit("waits")
        for run in (again, waits):
            start = world.start(run)
            await world.record(start, CancelAttempt(run, start.ticket, Cut.TIMED_OUT, start.epoch))
        back = Enqueue(waits, State.QUEUED, 1, world.granted(waits).epoch, ended=True)
        await world.record(back)
        await world.restart()
        holdings = await world.claim_all()
        (place,) = holdings[waits.session].places
        assert (place.cut, place.orphaned, place.attempt) == (None, False, 1)
        holding = holdings[again.session]
        world.hold(again, Granted(holding.epoch, holding.seen))
        await world.record(world.start(again, attempt=2))
        assert not (await view_of(world.store, again)).cancelling
        await world.restart()
        (place,) = (await world.claim_all())[again.session].places
        assert (place.cut, place.orphaned, place.attempt) == (None, True, 2)

    @pytest.mark.parametrize("cut", [Cut.PREEMPTED, Cut.DRAINED])
    def test_x5_a_run_that_only_gave_way_is_none_that_was_stopped(self, cut: Cut) -> None:
        @over_the_store
        async def main(self: DurableContract, world: World) -> None:
            run = await world.admit()
            start = world.start(run)
            await world.record(start, CancelAttempt(run, start.ticket, cut, start.epoch))
            await world.restart()
            (place,) = (await world.claim_one()).places
            assert (place.orphaned, place.cut) == (True, None)

        main(self)

    # Claims and news, as far as one node sees them.

    @over_the_store
    async def test_n17_without_a_claim_a_run_waits_to_be_claimed(self, world: World) -> None:
        first, second = await world.leave(), await world.leave()
        third = await world.try_admit()
        assert third == Elsewhere(3, owned=False), "what waits already goes first"
        holding = await world.claim_one()
        assert [place.run for place in holding.places][:2] == [first, second]
        assert holding.seen == 3
        assert await world.claim_all() == {}
        fourth = await world.try_admit()
        assert isinstance(fourth, Granted)
        assert (fourth.epoch, fourth.seq) == (holding.epoch, 4)

    @over_the_store
    async def test_n7_news_are_what_came_after_what_was_seen(self, world: World) -> None:
        first = await world.admit()
        epoch = world.granted(first).epoch
        assert list(await world.store.news({first.session: 1})) == []
        second = await world.admit()
        order = Order("o-1", first.session, Stop(), (await world.order(Stop())).seq)
        (holding,) = await world.store.news({first.session: 1, SessionKey("t"): 0})
        assert (holding.session, holding.epoch, holding.seen) == (first.session, epoch, 3)
        assert (holding.places, holding.orders) == ((Place(second, 2),), (order,))
        assert list(await world.store.news({first.session: 3})) == []
        await world.record(world.finish(second, STOPPED, attempt=0))
        (holding,) = await world.store.news({first.session: 1})
        assert (holding.seen, holding.places) == (3, ())

    @over_the_store
    async def test_n7_a_merged_run_is_no_news(self, world: World) -> None:
        parts = [await world.admit() for _ in range(2)]
        third = await world.admit()
        whole = merged(parts)
        granted = world.granted(third)
        taken_over = Outcome(State.CANCELLED, Reason.MERGED, into=whole.id)
        await world.record(
            Merge(whole, granted.epoch, granted.seq),
            *(world.finish(part, taken_over, attempt=0) for part in parts),
        )
        fourth = await world.admit()
        (holding,) = await world.store.news({whole.session: 2})
        assert [place.run for place in holding.places] == [third, fourth]

    @over_the_store
    async def test_n7_who_has_seen_nothing_is_told_everything(self, world: World) -> None:
        parts = [await world.admit(text=text) for text in ("one", "two")]
        third = await world.admit()
        whole = await world.merge(parts)
        await world.record(world.start(whole))
        (holding,) = await world.store.news({whole.session: 0})
        assert {place.run: place.seq for place in holding.places} == {whole: 2, third: 3}
        assert (holding.seen, holding.epoch) == (3, world.granted(third).epoch)

    @over_the_store
    async def test_n7_complete_news_have_what_the_node_does_not_know_of(self, world: World) -> None:
        """The answer by which it would know may have been lost."""
        known, unknown, idle = [await world.admit(name) for name in ("known", "unknown", "idle")]
        await world.carry_through(idle)
        memory = SessionMemory(overflow=("x",))
        epoch = world.granted(unknown).epoch
        await world.record(Remember(unknown.session, memory, epoch))
        granted = await world.try_order("o-1", Stop(), "unknown")
        assert isinstance(granted, Granted)
        other = await world.leave("other")
        assert list(await world.store.news({known.session: 1})) == []
        found = {
            holding.session: holding
            for holding in await world.store.news({known.session: 1}, complete=True)
        }
        assert {unknown.session} <= set(found) <= {unknown.session, idle.session}
        holding = found[unknown.session]
        assert (holding.epoch, holding.seen, holding.memory) == (epoch, 2, memory)
        assert holding.places == (Place(unknown, 1),)
        assert [order.id for order in holding.orders] == ["o-1"]
        assert await world.state(other) is State.QUEUED

    @over_the_store
    async def test_n7_released_with_work_left_it_can_be_claimed(self, world: World) -> None:
        run = await world.admit()
        await world.record(world.release(run))
        holding = await world.claim_one()
        assert holding.places == (Place(run, 1),)
        assert holding.epoch > world.granted(run).epoch

    @over_the_store
    async def test_n9_an_old_epoch_of_ones_own_is_lost_too(self, world: World) -> None:
        first = await world.admit()
        await world.carry_through(first)
        await world.record(world.release(first))
        second = await world.admit()
        old = world.granted(first)
        world.hold(second, old)
        recorded = await world.store.record([world.start(second)])
        assert recorded == Recorded(lost=((second.session, old.epoch),))
        assert await world.state(second) is State.QUEUED

    @over_the_store
    async def test_n13_stopping_an_idle_session_of_ones_own_is_nothing(self, world: World) -> None:
        run = await world.admit()
        await world.carry_through(run)
        assert await world.try_order("o-1", Stop()) is None

    @over_the_store
    async def test_more_than_a_thousand_runs_come_in_parts(self, world: World) -> None:
        runs = [world.run() for _ in range(1_150)]
        await asyncio.gather(*(ask(world.store, run, claim=False) for run in runs))
        holding = await world.claim_one()
        assert (len(holding.places), holding.more) == (1_000, True)
        assert holding.seen == holding.places[-1].seq
        (rest,) = await world.store.news({holding.session: holding.seen})
        assert (len(rest.places), rest.more) == (150, False)
        assert [place.seq for place in holding.places + rest.places] == list(range(1, 1_151))
        assert {place.run.id for place in holding.places + rest.places} == {r.id for r in runs}

    # Safe to repeat (N-15): the answer of a commit may have been lost.

    @over_the_store
    async def test_n15_a_repeated_admission_is_the_same_run(self, world: World) -> None:
        run = world.run(message_id="7", route=CHAT, idempotency_key="k")
        first = await ask(world.store, run)
        assert isinstance(first, Granted)
        again = await ask(world.store, run)
        assert isinstance(again, Granted)
        assert (again.epoch, again.seq, again.fresh) == (first.epoch, first.seq, False)
        assert await world.listed() == [run.id]
        later = world.run("t")
        for _ in range(2):
            assert await ask(world.store, later, claim=False) == Elsewhere(1, owned=False)
        assert sorted(await world.listed()) == sorted([run.id, later.id])

    @over_the_store
    async def test_n15_a_run_admitted_twice_at_once_is_one_run(self, world: World) -> None:
        run = world.run(idempotency_key="k")
        answers = await asyncio.gather(*(ask(world.store, run) for _ in range(5)))
        assert all(isinstance(answer, Granted) for answer in answers)
        assert await world.listed() == [run.id]
        (holding,) = await world.store.news({run.session: 0})
        assert [place.run for place in holding.places] == [run]

    @over_the_store
    async def test_n15_a_repeated_batch_changes_nothing(self, world: World) -> None:
        first, second = await world.admit(), await world.admit()
        parts = [await world.admit(text=text) for text in ("one", "two")]
        epoch = world.granted(first).epoch
        whole = merged(parts)
        world.hold(whole, world.granted(parts[-1]))
        taken_over = Outcome(State.CANCELLED, Reason.MERGED, into=whole.id)
        order = Order("o-1", first.session, Configure(), (await world.order(Configure())).seq)
        batches: list[list[Action]] = [
            [world.start(first), Deliver(world.delivery(first))],
            [
                world.finish(first),
                Remember(first.session, SessionMemory(overflow=("x",)), epoch),
                Merge(whole, epoch, world.granted(parts[-1]).seq),
                *(world.finish(part, taken_over, attempt=0) for part in parts),
                world.start(second),
                Respond(order, Answer(waiting=2), epoch),
            ],
            [Enqueue(second, State.QUEUED, 1, epoch, standing=STANDING, ended=True)],
        ]
        for batch in batches:
            for _ in range(2):
                assert await world.store.record(batch) == Recorded()
        assert await world.listed(state=State.DONE) == [first.id]
        assert await world.listed(state=State.QUEUED) == [whole.id, second.id]
        assert await world.store.answers(["o-1"]) == {"o-1": Answer(waiting=2)}
        now = world.clock.now()
        assert len(await world.store.take_deliveries(["telegram"], 9, now, now + 1)) == 1
        await world.restart()
        places = (await world.claim_one()).places
        assert {place.run: (place.seq, place.attempt) for place in places} == {
            second: (2, 1),
            whole: (4, 0),
        }

    @over_the_store
    async def test_n15_a_repeated_release_lets_the_session_be(self, world: World) -> None:
        run = await world.admit()
        batch: list[Action] = [world.start(run), world.finish(run), world.release(run)]
        assert await world.store.record(batch) == Recorded()
        await world.store.record(batch)
        assert await world.state(run) is State.DONE
        assert (await world.myself()).sessions == 0

    @over_the_store
    async def test_n15_a_repeated_order_has_one_place(self, world: World) -> None:
        await world.admit()
        first = await world.order(Stop())
        assert await world.order(Stop()) == first

    @over_the_store
    async def test_n15_what_no_database_takes_does_not_hurt_its_neighbours(
        self, world: World
    ) -> None:
        good = [world.run(f"s{number}") for number in range(10)]
        bad = [
            world.run("nul\0"),
            world.run("half a pair \ud800"),
            world.run(text="half a pair \ud800", idempotency_key="half \ud800"),
            world.run(agent=AgentName("nul\0")),
            world.run(lane=LaneName("nul\0")),
        ]
        mixed = [*good[:3], *bad[:2], *good[3:6], *bad[2:], *good[6:]]
        answers = await asyncio.gather(
            *(ask(world.store, run) for run in mixed), return_exceptions=True
        )
        for run, answer in zip(mixed, answers, strict=True):
            if run in good:
                assert isinstance(answer, Granted)
                assert await world.state(run) is State.QUEUED
            else:
                assert isinstance(answer, Granted | HeadwayError), "never a raw driver error"

    @over_the_store
    async def test_n15_an_action_that_no_database_takes_does_not_hurt_its_neighbours(
        self, world: World
    ) -> None:
        runs = [await world.admit(f"s{number}") for number in range(5)]
        odd = Outcome(State.FAILED, Reason.ERROR, error="half a pair \ud800 and \0")
        outcomes = [DONE, DONE, odd, DONE, DONE]
        await world.store.record([world.start(run) for run in runs])
        await world.store.record(
            [world.finish(run, outcome) for run, outcome in zip(runs, outcomes, strict=True)]
        )
        states = [await world.state(run) for run in runs]
        assert states[:2] + states[3:] == [State.DONE] * 4

    @over_the_store
    async def test_n11_two_live_attempts_in_one_slot_fail_one_run_only(self, world: World) -> None:
        first, second = await world.admit(), await world.admit()
        other = await world.admit("t")
        await world.record(world.start(first))
        recorded = await world.store.record([world.start(second), world.start(other)])
        epoch = world.granted(second).epoch
        assert recorded == Recorded(lost=((second.session, epoch),))
        view = await view_of(world.store, second)
        assert view.state is State.FAILED
        assert view.outcome is not None
        assert view.outcome.reason is Reason.ERROR
        assert view.outcome.error
        assert await world.state(first) is State.RUNNING
        assert await world.state(other) is State.RUNNING

    # Admission limits (F-1), as far as one node sees them.

    @over_the_store
    async def test_f1_tasks_beyond_the_limit_are_turned_away_and_listed(self, world: World) -> None:
        world.store.set_limits(Limits(max_queue=3, max_queue_per_agent=2))
        tasks = [await self._task(world, number, "a") for number in range(3)]
        assert [type(answer) for _, answer in tasks] == [Granted, Granted, TurnedAway]
        full = Outcome(State.REJECTED, Reason.QUEUE_FULL)
        assert tasks[2][1] == TurnedAway(full)
        turned_away = tasks[2][0]
        view = await view_of(world.store, turned_away)
        assert (view.state, view.outcome) == (State.REJECTED, full)
        assert view.finished_at == world.clock.now()
        assert await world.listed(state=State.REJECTED) == [turned_away.id]
        assert isinstance((await self._task(world, 3, "b"))[1], Granted)
        assert isinstance((await self._task(world, 4, "c"))[1], TurnedAway), "max_queue in all"
        assert isinstance(await world.try_admit("m"), Granted), "messages are not bounded here"

    @over_the_store
    async def test_f1_running_tasks_do_not_count(self, world: World) -> None:
        world.store.set_limits(Limits(max_queue=2, max_queue_per_agent=2))
        for number in range(4):
            run = await world.admit(f"t{number}", source=Source.TASK)
            await world.record(world.start(run))
        tasks = [await self._task(world, number, "a") for number in range(10, 13)]
        assert [type(answer) for _, answer in tasks] == [Granted, Granted, TurnedAway]

    @over_the_store
    async def test_f1_a_task_that_waits_again_counts_again(self, world: World) -> None:
        world.store.set_limits(Limits(max_queue=1, max_queue_per_agent=1))
        again = await world.admit("t1", source=Source.TASK)
        await world.record(world.start(again))
        world.store.set_limits(Limits(max_queue=0, max_queue_per_agent=0))
        assert isinstance((await self._task(world, 2, "a"))[1], TurnedAway), "none waits: counted"
        world.store.set_limits(Limits(max_queue=1, max_queue_per_agent=1))
        epoch = world.granted(again).epoch
        await world.record(
            Enqueue(again, State.QUEUED, 1, epoch, standing=STANDING, cut=Cut.LOST, ended=True)
        )
        assert isinstance((await self._task(world, 3, "a"))[1], TurnedAway)

    @over_the_store
    async def test_f1_room_that_is_made_is_used(self, world: World) -> None:
        world.store.set_limits(Limits(max_queue=1, max_queue_per_agent=1))
        first = await world.admit("t1", source=Source.TASK)
        assert isinstance((await self._task(world, 2, "a"))[1], TurnedAway)
        await world.record(world.finish(first, STOPPED, attempt=0))
        assert isinstance((await self._task(world, 3, "a"))[1], Granted)
        assert isinstance((await self._task(world, 4, "a"))[1], TurnedAway)
        world.store.set_limits(Limits(max_queue=2, max_queue_per_agent=2))
        assert isinstance((await self._task(world, 5, "a"))[1], Granted)

    @over_the_store
    async def test_f1_of_many_tasks_at_once_just_as_many_are_taken(self, world: World) -> None:
        world.store.set_limits(Limits(max_queue=50, max_queue_per_agent=7))
        tasks = await asyncio.gather(*(self._task(world, number, "a") for number in range(30)))
        taken = [answer for _, answer in tasks if isinstance(answer, Granted)]
        assert len(taken) == 7

    @over_the_store
    async def test_d6_a_task_that_was_turned_away_gives_its_key_back(self, world: World) -> None:
        world.store.set_limits(Limits(max_queue=1, max_queue_per_agent=1))
        first = await world.admit("t1", source=Source.TASK)
        away = await world.try_admit("t2", source=Source.TASK, idempotency_key="k")
        assert isinstance(away, TurnedAway)
        await world.carry_through(first)
        again = await world.try_admit("t3", source=Source.TASK, idempotency_key="k")
        assert isinstance(again, Granted)

    async def _task(self, world: World, number: int, agent: str) -> tuple[Run, object]:
        run = world.run(f"task-{number}", source=Source.TASK, agent=AgentName(agent))
        return run, await ask(world.store, run)

    # Forgetting.

    @over_the_store
    async def test_d8_attempts_orders_and_sessions_are_forgotten_too(self, world: World) -> None:
        run = await world.admit()
        epoch = world.granted(run).epoch
        await world.record(world.start(run))
        await world.record(Enqueue(run, State.QUEUED, 1, epoch, cut=Cut.PREEMPTED, ended=True))
        granted = await world.order(Stop())
        order = Order("o-1", run.session, Stop(), granted.seq)
        await world.record(
            world.finish(run, STOPPED),
            Respond(order, Answer(1), epoch),
            Release(run.session, epoch, granted.seq),
        )
        world.clock.advance(2 * DAY)
        assert await world.store.prune(1_000) == 1
        assert await world.store.find(run.id) is None
        assert await world.store.answers(["o-1"]) == {}
        again = await world.try_admit()
        assert isinstance(again, Granted)
        assert again.seq == 1

    @over_the_store
    async def test_d8_its_status_counts_the_runs(self, world: World) -> None:
        waits, runs, done = [await world.admit(name) for name in ("waits", "runs", "done")]
        await world.record(world.start(runs))
        await world.carry_through(done)
        pending = await world.admit("pending")
        epoch = world.granted(pending).epoch
        until = world.clock.now() + MINUTE
        await world.record(Enqueue(pending, State.PENDING, 0, epoch, until))
        status = await world.store.status()
        assert (status.version, status.pending) == (status.newest, ())
        counts = {state: count for state, count in status.runs.items() if count}
        assert counts == {State.QUEUED: 1, State.RUNNING: 1, State.DONE: 1, State.PENDING: 1}
        assert await world.state(waits) is State.QUEUED
        assert list(await world.store.migrate()) == [], "opening has done it"

    @pytest.mark.parametrize("size", [0, 1, 300_000])
    def test_texts_of_any_size_are_kept(self, size: int) -> None:
        @over_the_store
        async def main(self: DurableContract, world: World) -> None:
            run = await world.admit(text="é" * size)
            assert (await view_of(world.store, run)).run == run

        main(self)
