"""What every store must do (`ports.Store`), as one suite.

A store's own test module derives from `StoreContract`, or from `DurableContract` if its runs survive the process,
and says how to make the store. The suite never looks inside.
"""

import asyncio

import msgspec
import pytest

from headway import Outcome, Reply, Route, State
from headway.core.actions import (
    CancelAttempt,
    Deliver,
    Enqueue,
    Finish,
    Release,
    Remember,
    Respond,
    Steer,
)
from headway.core.session import BLANK
from headway.model.errors import InvalidInput
from headway.model.outcome import Attachment
from headway.model.places import Answer, Cancel, Clear, Configure, Delivery, Order, Stop, StopAll
from headway.model.run import (
    AgentName,
    LaneName,
    QueueOptions,
    RunId,
    Sender,
    SessionKey,
    SessionMemory,
)
from headway.model.task import Task
from headway.model.time import DAY, HOUR, MINUTE, SECOND
from headway.model.words import Cut, Drop, Mode, Reason, Source
from headway.ports import Duplicate, Elsewhere, Granted, Recorded, RunQuery
from tests.contract.world import (
    CHAT,
    DONE,
    LEASE,
    MAIN,
    ODD,
    STOPPED,
    Suite,
    World,
    ask,
    over_the_store,
    view_of,
)


class StoreContract(Suite):
    """What one node sees of any store. Derive from it, name the class `Test…`, and say how to make the store."""

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
    async def test_a_grant_says_whether_the_session_was_taken_just_now(self, world: World) -> None:
        runs = [await world.admit() for _ in range(2)]
        assert [world.granted(run).fresh for run in runs] == [True, False]
        for run in runs:
            await world.carry_through(run)
        idle = await world.admit()
        assert not world.granted(idle).fresh, "idle, but ours already"
        await world.carry_through(idle)
        await world.record(world.release(idle))
        assert (await world.order(StopAll())).fresh
        assert not world.granted(await world.admit()).fresh

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
        kept = await world.store.record([world.release(first)])
        assert kept == Recorded(kept=(first.session,))
        third = await world.admit("s")
        assert world.granted(third).epoch == world.granted(second).epoch
        assert world.granted(third).seq > world.granted(second).seq

    @over_the_store
    async def test_admissions_at_once_are_all_kept_and_numbered_apart(self, world: World) -> None:
        runs = await asyncio.gather(*(world.admit("s") for _ in range(50)))
        assert len({world.granted(run).seq for run in runs}) == 50
        assert len(await world.listed(limit=100)) == 50

    @over_the_store
    async def test_releases_that_hold_and_that_do_not_share_a_batch(self, world: World) -> None:
        early, idle = await world.admit("early"), await world.admit("idle")
        for run in (early, idle):
            await world.carry_through(run)
        late = await world.admit("early")
        recorded = await world.store.record([world.release(early), world.release(idle)])
        assert recorded == Recorded(kept=(early.session,))
        assert world.granted(await world.admit("early")).epoch == world.granted(late).epoch
        assert world.granted(await world.admit("idle")).epoch > world.granted(idle).epoch

    @over_the_store
    async def test_without_a_claim_a_run_is_stored_all_the_same(self, world: World) -> None:
        run = world.run()
        answer = await ask(world.store, run, claim=False)
        if isinstance(answer, Elsewhere):
            assert not answer.owned
        else:
            assert isinstance(answer, Granted)
        assert await world.listed() == [run.id]
        assert await world.state(run) is State.QUEUED

    @over_the_store
    async def test_without_a_claim_a_session_that_is_ours_stays_ours(self, world: World) -> None:
        first = await world.admit()
        answer = await ask(world.store, world.run(), claim=False)
        assert isinstance(answer, Granted)
        assert answer.epoch == world.granted(first).epoch
        assert answer.seq > world.granted(first).seq

    @over_the_store
    async def test_odd_characters_are_kept_wherever_a_caller_can_put_them(
        self, world: World
    ) -> None:
        run = await world.admit(
            text=ODD,
            message_id=ODD,
            idempotency_key=ODD,
            route=Route("telegram", account=ODD, peer=ODD, thread=ODD),
            sender=Sender(ODD, ODD),
            attachments=(Attachment(ODD, ODD, ODD),),
            trace_id=ODD,
        )
        assert (await view_of(world.store, run)).run == run
        again = await world.try_admit("t", idempotency_key=ODD)
        assert again == Duplicate(run.id)
        outcome = Outcome(State.FAILED, Reason.ERROR, Reply(ODD, data={ODD: ODD}), error=ODD)
        await world.record(world.finish(run, outcome))
        assert (await view_of(world.store, run)).outcome == outcome

    # Orders.

    @pytest.mark.parametrize("command", [Stop(), Clear(), Cancel(RunId("run-9"))], ids=repr)
    def test_n13_there_is_nothing_to_stop_in_an_idle_session(
        self, command: Stop | Clear | Cancel
    ) -> None:
        @over_the_store
        async def main(self: StoreContract, world: World) -> None:
            assert await world.try_order("o-1", command) is None
            run = await world.admit()
            await world.carry_through(run)
            await world.record(world.release(run))
            assert await world.try_order("o-2", command) is None
            assert await world.store.answers(["o-1", "o-2"]) == {}

        main(self)

    @pytest.mark.parametrize(
        "command", [StopAll(), Configure(QueueOptions(cap=3), change=True)], ids=repr
    )
    def test_n13_an_order_takes_an_idle_session(self, command: StopAll | Configure) -> None:
        @over_the_store
        async def main(self: StoreContract, world: World) -> None:
            granted = await world.order(command)
            assert granted.memory is None
            assert await world.listed() == []
            run = await world.admit()
            assert world.granted(run).epoch == granted.epoch
            assert world.granted(run).seq > granted.seq

        main(self)

    @pytest.mark.parametrize(
        "command",
        [
            Stop(),
            StopAll(sent_at=5, message_id="7", route=CHAT),
            Cancel(RunId("run-1")),
            Clear(),
            Configure(),
        ],
        ids=repr,
    )
    def test_n13_an_order_has_a_place_among_the_runs(
        self, command: Stop | StopAll | Cancel | Clear | Configure
    ) -> None:
        @over_the_store
        async def main(self: StoreContract, world: World) -> None:
            first = await world.admit()
            granted = await world.order(command)
            second = await world.admit()
            seqs = [world.granted(first).seq, granted.seq, world.granted(second).seq]
            assert seqs == sorted(set(seqs))
            assert granted.epoch == world.granted(first).epoch

        main(self)

    @over_the_store
    async def test_n13_an_answered_order_does_not_keep_its_session(self, world: World) -> None:
        run = await world.admit()
        granted = await world.order(Stop())
        order = Order("o-1", run.session, Stop(), granted.seq)
        await world.record(
            world.finish(run, STOPPED),
            Respond(order, Answer(running=1), granted.epoch),
            Release(run.session, granted.epoch, granted.seq),
        )
        assert world.granted(await world.admit()).epoch > granted.epoch

    @over_the_store
    async def test_s5_an_order_brings_what_the_session_remembers(self, world: World) -> None:
        memory = SessionMemory(options=QueueOptions(cap=3))
        granted = await world.order(Configure(QueueOptions(cap=3)))
        key = SessionKey("s")
        order = Order("o-1", key, Configure(QueueOptions(cap=3)), granted.seq)
        await world.record(
            Remember(key, memory, granted.epoch),
            Respond(order, Answer(), granted.epoch),
            Release(key, granted.epoch, granted.seq),
        )
        again = await world.try_order("o-2", Configure(QueueOptions(cap=4)))
        assert isinstance(again, Granted)
        assert again.memory == memory

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
        whole = await world.merge(parts)
        cut = Outcome(State.CANCELLED, Reason.DRAINING)
        await world.record(world.start(whole), world.finish(whole, cut))
        for number in ("1", "2"):
            await world.admit(message_id=number, route=CHAT)

    @over_the_store
    async def test_s8_a_message_taken_by_a_turn_that_was_cut_can_be_redelivered(
        self, world: World
    ) -> None:
        turn = await world.admit()
        messages = [await world.admit(message_id=number, route=CHAT) for number in ("1", "2")]
        await world.record(world.start(turn))
        absorbed = Outcome(State.CANCELLED, Reason.MERGED, into=turn.id)
        await world.record(*(world.finish(message, absorbed, 0) for message in messages))
        for message in messages:
            answer = await world.try_admit(message_id=message.message_id, route=CHAT)
            assert answer == Duplicate(message.id)
        await world.record(world.finish(turn, Outcome(State.CANCELLED, Reason.DRAINING)))
        for message in messages:
            await world.admit(message_id=message.message_id, route=CHAT)

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
    async def test_d6_an_orphan_keeps_its_key_for_it_may_have_acted(self, world: World) -> None:
        first = await world.admit(idempotency_key="k", message_id="7", route=CHAT)
        await world.carry_through(first, Outcome(State.FAILED, Reason.ORPHANED))
        assert await world.try_admit(idempotency_key="k") == Duplicate(first.id)
        second = await world.admit(message_id="7", route=CHAT)
        assert await world.try_admit(message_id="7", route=CHAT) == Duplicate(second.id)
        await world.admit(idempotency_key="k", retry=True)

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
        await world.store.prune(1_000)
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
            assert await world.store.outcomes([run.id]) == {run.id: outcome}
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
        await world.record(CancelAttempt(run, start.ticket, Cut.STOPPED, world.granted(run).epoch))
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
        whole = await world.merge(parts)
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

    @over_the_store
    async def test_r2_a_run_says_when_its_last_attempt_began(self, world: World) -> None:
        run = await world.admit()
        epoch = world.granted(run).epoch
        began_at = world.clock.advance(SECOND)
        await world.record(world.start(run))
        ended_at = world.clock.advance(SECOND)
        await world.record(Finish(run, DONE, 1, epoch, ended_at, began_at))
        view = await view_of(world.store, run)
        assert (view.started_at, view.finished_at) == (began_at, ended_at)

    @over_the_store
    async def test_r2_outcomes_tell_only_of_runs_that_have_ended(self, world: World) -> None:
        done, waits, runs = [await world.admit(name) for name in ("done", "waits", "runs")]
        await world.carry_through(done)
        await world.record(world.start(runs))
        asked = [done.id, waits.id, runs.id, RunId("nope")]
        assert await world.store.outcomes(asked) == {done.id: DONE}
        assert await world.store.outcomes([]) == {}

    @pytest.mark.parametrize("cut", [Cut.STOPPED, Cut.SUPERSEDED, Cut.DEADLINE, Cut.TIMED_OUT])
    def test_t5_each_cut_that_ends_the_run_says_cancelling(self, cut: Cut) -> None:
        @over_the_store
        async def main(self: StoreContract, world: World) -> None:
            run = await world.admit()
            start = world.start(run)
            await world.record(start, CancelAttempt(run, start.ticket, cut, start.epoch))
            assert (await view_of(world.store, run)).cancelling

        main(self)

    @pytest.mark.parametrize("cut", [Cut.PREEMPTED, Cut.DRAINED])
    def test_t5_a_run_that_only_gives_way_is_not_being_cancelled(self, cut: Cut) -> None:
        @over_the_store
        async def main(self: StoreContract, world: World) -> None:
            run = await world.admit()
            start = world.start(run)
            await world.record(start, CancelAttempt(run, start.ticket, cut, start.epoch))
            assert not (await view_of(world.store, run)).cancelling
            back = Enqueue(run, State.QUEUED, 1, start.epoch, cut=cut, ended=True)
            await world.record(back)
            await world.record(world.start(run, attempt=2))
            view = await view_of(world.store, run)
            assert (view.state, view.attempt, view.cancelling) == (State.RUNNING, 2, False)

        main(self)

    @over_the_store
    async def test_s1_a_wide_session_has_several_live_attempts(self, world: World) -> None:
        runs = [await world.admit() for _ in range(3)]
        await world.record(*(world.start(run, slot=slot) for slot, run in enumerate(runs)))
        assert await world.listed(state=State.RUNNING) == [run.id for run in runs[::-1]]
        await world.record(world.finish(runs[1]))
        fourth = await world.admit()
        await world.record(world.start(fourth, slot=1))
        assert await world.state(fourth) is State.RUNNING

    @over_the_store
    async def test_n11_a_slot_is_free_for_the_next_in_the_same_batch(self, world: World) -> None:
        first, second, third = [await world.admit() for _ in range(3)]
        await world.record(world.start(first))
        epoch = world.granted(first).epoch
        await world.record(world.finish(first), world.start(second))
        back = Enqueue(second, State.QUEUED, 1, epoch, cut=Cut.PREEMPTED, ended=True)
        await world.record(back, world.start(third))
        states = [await world.state(run) for run in (first, second, third)]
        assert states == [State.DONE, State.QUEUED, State.RUNNING]

    @over_the_store
    async def test_x2_a_steered_message_waits_until_its_turn_has_taken_it(
        self, world: World
    ) -> None:
        turn, message = await world.admit(), await world.admit()
        start = world.start(turn)
        await world.record(start, Steer(message, start.ticket, start.epoch))
        assert await world.state(message) is State.QUEUED
        absorbed = Outcome(State.DONE, into=turn.id)
        await world.record(world.finish(turn), world.finish(message, absorbed, attempt=0))
        assert (await view_of(world.store, message)).outcome == absorbed

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
        assert await world.store.memory_of(SessionKey("s")) == memory
        assert world.granted(await world.admit("s")).memory == memory
        assert world.granted(await world.admit("s")).memory == memory
        assert world.granted(await world.admit("t")).memory is None
        assert await world.store.memory_of(SessionKey("t")) is None

    @over_the_store
    async def test_s5_a_later_memory_takes_the_place_of_an_earlier_one(self, world: World) -> None:
        run = await world.admit()
        key, epoch = run.session, world.granted(run).epoch
        await world.record(
            Remember(key, SessionMemory(overflow=("x",)), epoch),
            Remember(key, SessionMemory(overflow=("x", "y")), epoch),
        )
        assert await world.store.memory_of(key) == SessionMemory(overflow=("x", "y"))
        await world.record(Remember(key, BLANK, epoch))
        assert await world.store.memory_of(key) is None

    @over_the_store
    async def test_d8_reading_a_memory_takes_nothing(self, world: World) -> None:
        assert await world.store.memory_of(SessionKey("s")) is None
        assert (await world.myself()).sessions == 0

    # The outbox.

    @over_the_store
    async def test_the_outbox_gives_what_is_due_the_oldest_first(self, world: World) -> None:
        run = await world.admit()
        deliveries = []
        for number in (1, 2, 3):
            deliveries.append(world.delivery(run, number))
            await world.record(Deliver(deliveries[-1]))
            world.clock.advance(SECOND)
        web = world.delivery(run, 4, channel="web")
        await world.record(Deliver(web))
        assert await self._taken(world, "mail") == []
        assert await self._taken(world, "telegram", most=2) == deliveries[:2]
        assert await self._taken(world, "telegram", "web") == [deliveries[2], web]
        assert await self._taken(world, "telegram", "web") == []

    @over_the_store
    async def test_a_delivery_is_kept_whole(self, world: World) -> None:
        run = await world.admit()
        files = (Attachment("a.png", "image/png", "file:///a.png"), Attachment("b"))
        said = msgspec.structs.replace(world.delivery(run), route=CHAT, text=ODD, attachments=files)
        await world.record(Deliver(said))
        assert await self._taken(world, "telegram") == [said]

    @over_the_store
    async def test_a_delivery_that_was_not_settled_comes_again(self, world: World) -> None:
        run = await world.admit()
        said = world.delivery(run)
        await world.record(Deliver(said))
        assert await self._taken(world, "telegram") == [said]
        world.clock.advance(MINUTE - 1)
        assert await self._taken(world, "telegram") == []
        world.clock.advance(1)
        assert await self._taken(world, "telegram") == [said]

    @over_the_store
    async def test_a_settled_delivery_is_gone_and_a_failed_one_comes_later(
        self, world: World
    ) -> None:
        run = await world.admit()
        told, failed, dead = (world.delivery(run, number) for number in (1, 2, 3))
        await world.record(Deliver(told), Deliver(failed), Deliver(dead))
        await self._taken(world, "telegram")
        await world.store.settle_delivery(told)
        again_at = world.clock.now() + 2 * MINUTE
        await world.store.settle_delivery(failed, again_at, "no network")
        await world.store.settle_delivery(dead, error="the chat is gone")
        world.clock.advance(2 * MINUTE - 1)
        assert await self._taken(world, "telegram") == []
        world.clock.advance(1)
        (again,) = await self._taken(world, "telegram")
        assert again == msgspec.structs.replace(failed, tries=1)
        await world.store.settle_delivery(again, world.clock.now(), "no network")
        assert [delivery.tries for delivery in await self._taken(world, "telegram")] == [2]

    @over_the_store
    async def test_n15_the_same_delivery_is_kept_once(self, world: World) -> None:
        run = await world.admit()
        said = world.delivery(run)
        await world.record(Deliver(said), Deliver(said))
        await world.record(Deliver(said))
        assert await self._taken(world, "telegram") == [said]

    @over_the_store
    async def test_a_delivery_that_was_made_does_not_come_back(self, world: World) -> None:
        """A node that took it, was slow, and failed does not undo what another has done meanwhile."""
        run = await world.admit()
        said = world.delivery(run)
        await world.record(Deliver(said))
        await self._taken(world, "telegram")
        await world.store.settle_delivery(said)
        await world.store.settle_delivery(said, world.clock.now(), "no network")
        assert await self._taken(world, "telegram") == []

    async def _taken(self, world: World, *channels: str, most: int = 10) -> list[Delivery]:
        now = world.clock.now()
        return list(await world.store.take_deliveries(channels, most, now, now + MINUTE))

    # Nodes and slots.

    @over_the_store
    async def test_a_node_sees_itself(self, world: World) -> None:
        first, second = await world.admit("s"), await world.admit("t")
        await world.record(world.start(first))
        me = await world.myself()
        assert (me.name, me.lease, me.ended) == ("one", LEASE, "")
        assert (me.started_at, me.sessions, me.running) == (world.clock.now(), 2, 1)
        await world.record(world.finish(first), world.release(first))
        me = await world.myself()
        assert (me.sessions, me.running) == (1, 0)
        assert await world.state(second) is State.QUEUED

    @over_the_store
    async def test_n1_a_restart_is_a_new_incarnation(self, world: World) -> None:
        first = world.node
        await world.store.retire()
        assert await world.store.enlist("one", LEASE) > first

    @over_the_store
    async def test_n2_a_node_that_renews_lives(self, world: World) -> None:
        for _ in range(3):
            renewal = await world.store.renew()
            assert renewal.alive
            assert renewal.peers == ()

    @over_the_store
    async def test_l8_slots_are_held_up_to_the_limit_and_given_back(self, world: World) -> None:
        hold = world.store.hold_slots
        assert await hold(MAIN, 5, 3) == 3
        assert await hold(MAIN, 5, 3) == 3, "safe to repeat"
        assert await hold(MAIN, 5, 9) == 5
        assert await world.store.slots_wanted(MAIN) == 0, "one's own wish is nobody else's"
        assert await hold(LaneName("cron"), 1, 5) == 1
        assert await hold(MAIN, 5, 2) == 2
        assert await hold(MAIN, 5, 5) == 5
        assert await hold(MAIN, 5, 0) == 0

    @over_the_store
    async def test_l8_a_smaller_limit_holds_for_what_is_taken_from_now_on(
        self, world: World
    ) -> None:
        hold = world.store.hold_slots
        assert await hold(MAIN, 5, 5) == 5
        assert await hold(MAIN, 3, 2) == 2
        assert await hold(MAIN, 3, 5) == 3

    @over_the_store
    async def test_events_to_keep_are_taken(self, world: World) -> None:
        fields = {"node": 3, "name": ODD, "lost": [1, None, 2.5, True]}
        await world.store.keep("node_dead", world.clock.now(), fields)

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
        await world.store.prune(1_000)
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
    async def test_t1_lists_can_be_narrowed_to_who_asked(self, world: World) -> None:
        ids: dict[Source, list[str]] = {source: [] for source in Source}
        for turn in range(2):
            for source in Source:
                task = Task("a", params={"source": "message", "text": ODD})
                text = "half of a pair: \ud83d" if turn else ODD
                run = await world.admit(
                    f'"source":"task" \\{source}', source=source, text=text, task=task
                )
                ids[source].insert(0, run.id)
                if turn:
                    await world.carry_through(run)
        for source, expected in ids.items():
            assert await world.listed(source=source) == expected
            assert await world.listed(source=source, state=State.DONE) == expected[:1]
            page = await world.store.list(RunQuery(limit=1, source=source, agent="a"))
            assert [view.id for view in page.runs] == expected[:1]
            again = await world.listed(source=source, agent="a", cursor=page.cursor)
            assert again == expected[1:]
            session = f'"source":"task" \\{source}'
            assert await world.listed(source=source, session=session) == expected
        assert await world.listed(source=Source.TASK, agent="b") == []

    @over_the_store
    async def test_a_view_does_not_change_in_the_readers_hands(self, world: World) -> None:
        run = await world.admit()
        before = await world.store.find(run.id)
        await world.carry_through(run)
        assert before is not None
        assert before.state is State.QUEUED

    @pytest.mark.parametrize("cursor", ["x", "-1", "", "1" * 30, "1; drop table runs"])
    def test_a_cursor_that_no_page_gave_is_refused(self, cursor: str) -> None:
        @over_the_store
        async def main(self: StoreContract, world: World) -> None:
            with pytest.raises(InvalidInput):
                await world.store.list(RunQuery(cursor=cursor))

        main(self)

    @over_the_store
    async def test_pages_can_be_narrowed_too(self, world: World) -> None:
        ids = [(await world.admit(f"s{number % 2}")).id for number in range(10)]
        listed: list[str] = []
        cursor: str | None = None
        while cursor is not None or not listed:
            page = await world.store.list(RunQuery(session="s0", limit=2, cursor=cursor))
            listed += [view.id for view in page.runs]
            cursor = page.cursor
        assert listed == ids[::2][::-1]

    # Forgetting.

    @over_the_store
    async def test_d8_finished_runs_are_forgotten_after_their_retention(self, world: World) -> None:
        message = await world.admit("m")
        task = await world.admit("t", source=Source.TASK)
        waiting = await world.admit("w")
        running = await world.admit("r")
        for run in (message, task):
            await world.carry_through(run)
        await world.record(world.start(running))
        world.clock.advance(5 * MINUTE - 1)
        assert await world.store.prune(1_000) == 0
        world.clock.advance(1)
        assert await world.store.prune(1_000) == 1
        assert await world.store.find(task.id) is None
        assert await world.store.find(message.id) is not None
        world.clock.advance(60 * MINUTE)
        assert await world.store.prune(1_000) == 1
        assert await world.store.find(message.id) is None
        assert await world.store.outcomes([message.id, task.id]) == {}
        assert await world.listed() == [running.id, waiting.id]
        assert await world.state(waiting) is State.QUEUED, "what has not ended is never forgotten"
        assert await world.state(running) is State.RUNNING

    @over_the_store
    async def test_d8_at_most_so_many_are_forgotten_at_once(self, world: World) -> None:
        for number in range(5):
            await world.carry_through(await world.admit(f"s{number}"))
        world.clock.advance(DAY)
        assert [await world.store.prune(2) for _ in range(4)] == [2, 2, 1, 0]
        assert await world.listed() == []

    @over_the_store
    async def test_s8_a_run_that_a_key_leads_to_is_kept_until_the_key_is_free(
        self, world: World
    ) -> None:
        run = await world.admit(message_id="7", route=CHAT, source=Source.TASK)
        await world.carry_through(run)
        world.clock.advance(20 * MINUTE - 1)
        assert await world.store.prune(1_000) == 0
        assert await world.try_admit(message_id="7", route=CHAT) == Duplicate(run.id)
        world.clock.advance(1)
        assert await world.store.prune(1_000) == 1
        assert await world.store.find(run.id) is None
        await world.admit(message_id="7", route=CHAT)

    @over_the_store
    async def test_d8_the_parts_of_a_merged_run_are_forgotten_with_it(self, world: World) -> None:
        parts = [await world.admit(text=text) for text in ("one", "two")]
        whole = await world.merge(parts)
        await world.carry_through(whole)
        world.clock.advance(HOUR)
        assert await world.store.prune(1_000) == 3
        assert await world.listed() == []

    @over_the_store
    async def test_d8_keys_and_runs_may_end_in_any_order(self, world: World) -> None:
        old = await world.admit(idempotency_key="k", source=Source.TASK)
        await world.carry_through(old)
        world.clock.advance(2 * DAY)
        await world.admit(idempotency_key="l")
        await world.carry_through(await world.admit(source=Source.TASK))
        await world.store.prune(1_000)
        assert await world.store.find(old.id) is None
