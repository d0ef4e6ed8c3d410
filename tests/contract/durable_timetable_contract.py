"""What a store must do about time whose jobs survive the process: the rest of what one node sees of it."""

import msgspec

from headway import Route, State
from headway.core.actions import Deliver, Remember
from headway.model.job import Ticking
from headway.model.places import Place
from headway.model.run import AgentName, SessionMemory
from headway.model.time import DAY, HOUR, MINUTE
from headway.ports import Elsewhere, Granted, LetterQuery, LogQuery
from tests.contract.outbox_contract import OutboxContract
from tests.contract.timekeeper import CRON, Timekeeper, a_full_job, past_of
from tests.contract.timetable_contract import TimetableContract
from tests.contract.world import CHAT, DONE, MAIN, ODD, World, over_the_store


class DurableTimetableContract(TimetableContract, OutboxContract):
    """Derive from it, name the class `Test…`, and say how to make the store."""

    # A restart: all that was acknowledged is there.

    @over_the_store
    async def test_d1_jobs_and_where_they_stand_are_there_after_a_restart(
        self, world: World
    ) -> None:
        full = a_full_job(world.clock.now())
        ticking = Ticking(0, next_at=10, wake_at=5, claimed_until=7, since=3, paused=ODD)
        assert await world.store.add_job(full, ticking)
        keeper = Timekeeper(world)
        job = await keeper.add()
        done, waits = await keeper.fire(job, due_at=1), await keeper.fire(job, due_at=2)
        await world.carry_through(done)
        gone = await keeper.add("gone")
        await keeper.skip(gone)
        assert await world.store.remove_job(gone.id)
        before = [await keeper.known(known) for known in (full, job)]
        log, due = await keeper.log(), await keeper.due("function:look", "agent:a")
        await world.restart()
        keeper = Timekeeper(world)
        assert [await keeper.known(known) for known in (full, job)] == before
        assert await keeper.log() == log
        assert await keeper.due("function:look", "agent:a") == due
        assert await world.store.find_job(gone.id) is None
        assert before[1].recent == (past_of(waits, State.QUEUED), past_of(done, State.DONE))
        assert before[1].last is not None
        assert before[1].last.outcome == DONE

    @over_the_store
    async def test_c5_a_firing_does_not_happen_again_after_a_restart(self, world: World) -> None:
        keeper = Timekeeper(world)
        job = await keeper.add()
        step = await keeper.step(job, keeper.run(job, world.clock.now()))
        assert await keeper.advance(step) != [None]
        await world.restart()
        keeper = Timekeeper(world)
        assert (await keeper.due()).jobs == ()
        assert await keeper.advance(step) == [None]
        again = await keeper.step(job, keeper.run(job, world.clock.now()))
        assert await keeper.advance(again) == [None], "this due time has had its run"
        assert await world.listed() == [step.runs[0].id]

    @over_the_store
    async def test_d1_a_firing_that_was_not_begun_is_there_after_a_restart(
        self, world: World
    ) -> None:
        keeper = Timekeeper(world)
        run = await keeper.fire(await keeper.add(), session="s")
        await world.restart()
        holding = await _claimed(world)
        assert holding == (Place(run, 1),)

    @over_the_store
    async def test_d7_a_firing_that_ran_is_an_orphan_after_a_restart(self, world: World) -> None:
        keeper = Timekeeper(world)
        job = await keeper.add()
        run = await keeper.fire(job, session="s")
        await world.record(world.start(run))
        await world.restart()
        keeper = Timekeeper(world)
        assert (await keeper.known(job)).recent == (past_of(run, State.QUEUED),)
        (line,) = await keeper.log(job)
        assert line.state is State.QUEUED
        (place,) = await _claimed(world)
        assert (place.run, place.orphaned) == (run, True)

    @over_the_store
    async def test_d1_letters_texts_and_routes_are_there_after_a_restart(
        self, world: World
    ) -> None:
        store = world.store
        run = await world.admit()
        dead, said = world.delivery(run, 1), world.delivery(run, 2)
        said = msgspec.structs.replace(said, once="k", once_until=world.clock.now() + DAY)
        await world.record(Deliver(dead), Deliver(said))
        await store.settle_delivery(dead, error="gone")
        await store.settle_delivery(said)
        await store.keep_text("checklist", ODD)
        await store.note_routes({AgentName("a"): CHAT}, 10)
        await world.restart()
        store = world.store
        (letter,) = (await store.letters(LetterQuery())).letters
        assert letter == msgspec.structs.replace(dead, tries=1, error="gone")
        assert await store.text("checklist") == ODD
        await store.note_routes({AgentName("a"): Route("web")}, 9)
        assert await store.last_route(AgentName("a")) == CHAT
        again = await world.admit("again")
        repeated = msgspec.structs.replace(said, id="again", session=again.session)
        epoch = world.granted(again).epoch
        await world.record(Deliver(msgspec.structs.replace(repeated, epoch=epoch)))
        assert (await store.letters(LetterQuery(dead=False))).letters == (), "said before (H-2)"
        assert await store.retry_letter(dead.id, world.clock.now())

    @over_the_store
    async def test_c11_numbers_of_lines_go_on_after_a_restart(self, world: World) -> None:
        job = await Timekeeper(world).add()
        for _ in range(3):
            await Timekeeper(world).skip(job)
            await world.restart()
        page = await world.store.job_log(LogQuery(limit=2))
        rest = await world.store.job_log(LogQuery(cursor=page.cursor))
        numbers = [line.number for line in (*page.entries, *rest.entries)]
        assert len(numbers) == 3
        assert numbers == sorted(set(numbers), reverse=True)

    # Who decides for the session of a firing.

    @over_the_store
    async def test_n17_a_firing_without_a_claim_waits_to_be_claimed(self, world: World) -> None:
        keeper = Timekeeper(world)
        job = await keeper.add()
        now = world.clock.now()
        first = keeper.run(job, now, "s", due_at=now + MINUTE)
        second = keeper.run(job, now + 1, "t")
        step = await keeper.step(job, first, second, claim=False)
        assert await keeper.advance(step) == [(Elsewhere(1, owned=False),) * 2]
        assert (await world.myself()).sessions == 0
        claims = await world.store.claim({CRON: 9}, [job.agent], now)
        assert [holding.places for holding in claims.holdings] == [(Place(second, 1),)]
        assert claims.next_at == now + MINUTE, "it starts when it is due (D-5)"
        claims = await world.store.claim({CRON: 9}, [job.agent], now + MINUTE)
        assert [holding.places for holding in claims.holdings] == [(Place(first, 1),)]

    @over_the_store
    async def test_n17_each_run_is_taken_or_left_as_it_was_said(self, world: World) -> None:
        keeper = Timekeeper(world)
        job = await keeper.add()
        runs = [keeper.run(job, number, f"s{number}") for number in range(3)]
        claims = (True, False, True)
        (admissions,) = await keeper.advance(await keeper.step(job, *runs, claims=claims))
        assert admissions is not None
        assert [isinstance(one, Granted) for one in admissions] == [True, False, True]
        assert (await world.myself()).sessions == 2
        for run, claimed in zip(runs, claims, strict=True):
            if claimed:
                await world.carry_through(run)

    @over_the_store
    async def test_n17_what_was_left_in_a_session_goes_before_what_would_be_taken(
        self, world: World
    ) -> None:
        keeper = Timekeeper(world)
        job = await keeper.add()
        runs = [keeper.run(job, number, "s") for number in range(2)]
        step = await keeper.step(job, *runs, claims=(False, True))
        left = [Elsewhere(seq, owned=False) for seq in (1, 2)]
        assert await keeper.advance(step) == [tuple(left)]
        assert await _claimed(world) == (Place(runs[0], 1), Place(runs[1], 2))

    @over_the_store
    async def test_n17_what_waits_in_a_session_goes_first(self, world: World) -> None:
        keeper = Timekeeper(world)
        job = await keeper.add()
        left = await world.leave("s")
        run = keeper.run(job, world.clock.now(), "s")
        assert await keeper.advance(await keeper.step(job, run)) == [(Elsewhere(2, owned=False),)]
        places = await _claimed(world)
        assert places == (Place(left, 1), Place(run, 2))

    @over_the_store
    async def test_n7_a_firing_is_news_where_its_answer_was_lost(self, world: World) -> None:
        keeper = Timekeeper(world)
        job = await keeper.add()
        run = await keeper.fire(job, session="s")
        (holding,) = await world.store.news({run.session: 0})
        assert (holding.places, holding.seen) == ((Place(run, 1),), 1)
        (holding,) = await world.store.news({}, complete=True)
        assert holding.places == (Place(run, 1),)

    @over_the_store
    async def test_s5_a_firing_brings_what_its_session_remembers(self, world: World) -> None:
        keeper = Timekeeper(world)
        job = await keeper.add()
        memory = SessionMemory(overflow=("one",))
        first = await keeper.fire(job, session="s")
        granted = world.granted(first)
        assert granted.memory is None
        await world.carry_through(first)
        await world.record(Remember(first.session, memory, granted.epoch), world.release(first))
        second = await keeper.fire(job, session="s", due_at=world.clock.advance(HOUR))
        again = world.granted(second)
        assert again.epoch > granted.epoch
        assert (again.memory, again.fresh) == (memory, True)


async def _claimed(world: World) -> tuple[Place, ...]:
    claims = await world.store.claim({MAIN: 9, CRON: 9}, [AgentName("a")], world.clock.now())
    (holding,) = claims.holdings
    return holding.places
