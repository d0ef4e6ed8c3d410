"""What every store must do about time (`ports.Timetable`): jobs, what is due, firings and their log.

A store's own test module derives from `TimetableContract` beside `StoreContract`. The suite plays the timekeeper
of a node: it reads jobs, decides how each goes on, and names the version that it read.
"""

import asyncio

import msgspec
import pytest

from headway import Outcome, Reply, State
from headway.core.actions import Enqueue
from headway.model.errors import InvalidInput
from headway.model.heartbeat import HeartbeatSettings
from headway.model.job import (
    MAX_RECENT,
    MAX_SUMMARY,
    Ending,
    Entry,
    Job,
    JobRecord,
    Tally,
    Ticking,
)
from headway.model.outcome import Attachment
from headway.model.payload import Gate
from headway.model.run import AgentName, JobId, RunId
from headway.model.time import HOUR, MINUTE, SECOND
from headway.model.words import Fired, Reason
from headway.ports import DueJobs, Elsewhere, Granted, Hint, JobQuery, LogQuery
from tests.contract.cluster import Cluster, over_the_nodes
from tests.contract.timekeeper import Timekeeper, a_full_job, a_job, past_of, plain
from tests.contract.world import DONE, ODD, STOPPED, Suite, World, over_the_store, view_of

FAILED = Outcome(State.FAILED, Reason.ERROR, error="ValueError: no")
B = AgentName("b")


class TimetableContract(Suite):
    """Derive from it, name the class `Test…`, and say how to make the store."""

    # Jobs.

    @over_the_store
    async def test_c1_a_job_is_kept_as_it_was_made(self, world: World) -> None:
        job = a_full_job(world.clock.now())
        ticking = Ticking(0, next_at=10, wake_at=5, claimed_until=7, since=3, paused=ODD)
        assert await world.store.add_job(job, ticking)
        record = JobRecord(job, msgspec.structs.replace(ticking, version=1))
        assert await world.store.find_job(job.id) == record
        assert await world.store.find_job_named(job.agent, job.name) == record

    @over_the_store
    async def test_c1_what_a_job_does_not_say_is_not_said_for_it(self, world: World) -> None:
        job = await Timekeeper(world).add()
        record = await world.store.find_job(job.id)
        assert record == JobRecord(job, Ticking(1, next_at=world.clock.now()))

    @over_the_store
    async def test_c1_an_unknown_job_is_not_found(self, world: World) -> None:
        job = await Timekeeper(world).add()
        assert await world.store.find_job(JobId("nope")) is None
        assert await world.store.find_job_named(job.agent, "nope") is None
        assert await world.store.find_job_named(B, job.name) is None

    @over_the_store
    async def test_c1_a_name_is_unique_among_the_jobs_of_an_agent(self, world: World) -> None:
        keeper = Timekeeper(world)
        job = await keeper.add("digest", due_at=5)
        again = a_job("digest", 7, id=JobId("another"))
        assert not await world.store.add_job(again, Ticking(next_at=9))
        assert await world.store.find_job(again.id) is None
        assert await keeper.known(job) == JobRecord(job, Ticking(1, next_at=5))
        theirs = msgspec.structs.replace(again, agent=B)
        assert await world.store.add_job(theirs, Ticking(next_at=9))
        assert await keeper.listed(limit=10) == ["digest", "digest"]

    @over_the_store
    async def test_n15_a_job_that_is_added_again_is_the_one_that_is_there(
        self, world: World
    ) -> None:
        keeper = Timekeeper(world)
        job = await keeper.add(due_at=5)
        assert not await world.store.add_job(job, Ticking(next_at=5))
        renamed = msgspec.structs.replace(job, name="another")
        assert not await world.store.add_job(renamed, Ticking(next_at=9))
        assert await keeper.known(job) == JobRecord(job, Ticking(1, next_at=5))
        assert await keeper.listed() == [job.name]

    @over_the_store
    async def test_c1_of_many_jobs_of_one_name_added_at_once_one_is_taken(
        self, world: World
    ) -> None:
        jobs = [a_job("digest", 0, id=JobId(f"job-{number}")) for number in range(10)]
        taken = await asyncio.gather(*(world.store.add_job(job, Ticking()) for job in jobs))
        assert sum(taken) == 1
        record = await world.store.find_job_named(AgentName("a"), "digest")
        assert record is not None
        assert record.job == jobs[taken.index(True)]

    @over_the_store
    async def test_c10_a_change_counts_the_version_up(self, world: World) -> None:
        keeper = Timekeeper(world)
        job = await keeper.add(due_at=5)
        changed = msgspec.structs.replace(a_full_job(9), id=job.id)
        ticking = Ticking(1, next_at=8, wake_at=9, claimed_until=7, since=3, paused="why")
        assert await world.store.change_job(changed, ticking)
        after = msgspec.structs.replace(ticking, version=2)
        assert await keeper.known(job) == JobRecord(changed, after)
        assert await world.store.find_job_named(job.agent, job.name) is None
        found = await world.store.find_job_named(changed.agent, changed.name)
        assert found == JobRecord(changed, after)

    @over_the_store
    async def test_c10_a_change_by_an_old_version_is_refused(self, world: World) -> None:
        keeper = Timekeeper(world)
        job = await keeper.add(due_at=5)
        renamed = msgspec.structs.replace(job, name="renamed")
        assert await world.store.change_job(renamed, Ticking(1, next_at=6))
        late = msgspec.structs.replace(job, name="late", enabled=False)
        for version in (0, 1, 3):
            assert not await world.store.change_job(late, Ticking(version, next_at=7))
        assert await keeper.known(job) == JobRecord(renamed, Ticking(2, next_at=6))
        assert not await world.store.change_job(a_job("nope", 0), Ticking(1))

    @over_the_store
    async def test_c10_of_many_changes_at_once_one_is_kept(self, world: World) -> None:
        keeper = Timekeeper(world)
        job = await keeper.add()
        changes = [
            world.store.change_job(msgspec.structs.replace(job, retries=number), Ticking(1))
            for number in range(10)
        ]
        taken = await asyncio.gather(*changes)
        assert sum(taken) == 1
        record = await keeper.known(job)
        assert (record.job.retries, record.ticking.version) == (taken.index(True), 2)

    @over_the_store
    async def test_c1_a_change_to_a_name_that_is_taken_is_refused(self, world: World) -> None:
        keeper = Timekeeper(world)
        taken, job = await keeper.add("taken"), await keeper.add("job", due_at=5)
        before = await keeper.known(job)
        with pytest.raises(InvalidInput) as refused:
            await world.store.change_job(msgspec.structs.replace(job, name="taken"), Ticking(1))
        assert refused.value.field == "name"
        assert await keeper.known(job) == before
        assert (await keeper.known(taken)).job == taken
        theirs = msgspec.structs.replace(job, name="taken", agent=B)
        assert await world.store.change_job(theirs, before.ticking)
        await keeper.add("job", id=JobId("its name is free"))

    @over_the_store
    async def test_c10_a_removed_job_is_gone_and_its_log_stays(self, world: World) -> None:
        keeper = Timekeeper(world)
        job = await keeper.add()
        run = await keeper.fire(job)
        stale = await keeper.step(job, keeper.run(job, world.clock.advance(HOUR)))
        assert await world.store.remove_job(job.id)
        assert not await world.store.remove_job(job.id), "there is none any more"
        assert await world.store.find_job(job.id) is None
        assert await world.store.find_job_named(job.agent, job.name) is None
        assert await keeper.listed() == []
        assert await keeper.due() == DueJobs()
        assert not await world.store.change_job(job, Ticking(2))
        assert await keeper.advance(stale) == [None], "a firing not yet started does not happen"
        await world.carry_through(run)
        (line,) = await keeper.log(job)
        assert (line.run_id, line.state, line.outcome) == (run.id, State.DONE, DONE)
        assert await world.listed() == [run.id]

    @over_the_store
    async def test_c10_a_new_job_of_the_same_name_has_a_log_of_its_own(self, world: World) -> None:
        keeper = Timekeeper(world)
        old = await keeper.add("digest")
        await keeper.fire(old)
        assert await world.store.remove_job(old.id)
        new = await keeper.add("digest", id=JobId("new"))
        assert await keeper.log(new) == []
        assert (await keeper.known(new)).recent == ()
        assert len(await keeper.log(old)) == 1

    # Lists of jobs.

    @over_the_store
    async def test_c13_lists_are_by_agent_and_name_and_paged(self, world: World) -> None:
        keeper = Timekeeper(world)
        names = ["Zoe", "b", "a", "é", "a b", "10", "9", "\N{GRINNING FACE}"]
        for name in names:
            await keeper.add(name)
        await keeper.add("0", agent=B)
        await keeper.add("x", agent=AgentName("B"))
        listed: list[str] = []
        cursor: str | None = None
        for size in (4, 4, 2):
            page = await world.store.list_jobs(JobQuery(limit=4, cursor=cursor))
            assert len(page.jobs) == size
            listed += [record.job.name for record in page.jobs]
            cursor = page.cursor
        assert cursor is None
        assert listed == ["x", *sorted(names), "0"]
        assert (await world.store.list_jobs(JobQuery(limit=10))).cursor is None

    @over_the_store
    async def test_c13_lists_of_jobs_can_be_narrowed(self, world: World) -> None:
        keeper = Timekeeper(world)
        await keeper.add("on")
        await keeper.add("off", enabled=False)
        await keeper.add("theirs", agent=B)
        await keeper.add("beat", heartbeat=HeartbeatSettings())
        await keeper.add("their beat", agent=B, heartbeat=HeartbeatSettings(), enabled=False)
        assert await keeper.listed() == ["off", "on", "theirs"]
        assert await keeper.listed(heartbeats=True) == ["beat", "their beat"]
        everything = ["beat", "off", "on", "their beat", "theirs"]
        assert await keeper.listed(heartbeats=None) == everything
        assert await keeper.listed(agent="a") == ["off", "on"]
        assert await keeper.listed(agent="nobody") == []
        assert await keeper.listed(enabled=True) == ["on", "theirs"]
        assert await keeper.listed(enabled=False, heartbeats=None) == ["off", "their beat"]
        assert await keeper.listed(agent="b", enabled=True, heartbeats=None) == ["theirs"]
        page = await world.store.list_jobs(JobQuery(agent="a", heartbeats=None, limit=2))
        rest = await keeper.listed(agent="a", heartbeats=None, cursor=page.cursor)
        assert [record.job.name for record in page.jobs] + rest == ["beat", "off", "on"]

    @over_the_store
    async def test_c13_what_changes_while_paging_neither_repeats_nor_hides_others(
        self, world: World
    ) -> None:
        keeper = Timekeeper(world)
        jobs = [await keeper.add(name) for name in "bdfh"]
        page = await world.store.list_jobs(JobQuery(limit=2))
        for gone in jobs[1:3]:
            assert await world.store.remove_job(gone.id)
        await keeper.add("a")
        await keeper.add("g")
        assert [record.job for record in page.jobs] == jobs[:2]
        assert await keeper.listed(cursor=page.cursor) == ["g", "h"]

    @pytest.mark.parametrize("cursor", ["x", "", "1" * 30, "[]", '{"a": 1}', "1; drop table jobs"])
    def test_a_cursor_that_no_page_of_jobs_gave_is_refused(self, cursor: str) -> None:
        @over_the_store
        async def main(self: TimetableContract, world: World) -> None:
            await Timekeeper(world).add()
            with pytest.raises(InvalidInput) as refused:
                await world.store.list_jobs(JobQuery(cursor=cursor))
            assert refused.value.field == "cursor"

        main(self)

    @over_the_store
    async def test_c13_a_list_tells_what_became_of_the_latest_runs(self, world: World) -> None:
        keeper = Timekeeper(world)
        quiet, busy = await keeper.add("quiet"), await keeper.add("busy")
        first, second = await keeper.fire(busy), await keeper.fire(busy, due_at=1)
        await world.carry_through(first)
        await world.record(world.start(second))
        page = await world.store.list_jobs(JobQuery())
        assert page.jobs == (await keeper.known(busy), await keeper.known(quiet))
        assert [past.state for past in page.jobs[0].recent] == [State.RUNNING, State.DONE]
        assert page.jobs[0].last is not None
        assert page.jobs[0].last.run_id == first.id
        assert (page.jobs[1].recent, page.jobs[1].last) == ((), None)

    # What is due.

    @over_the_store
    async def test_c5_what_is_due_comes_the_earliest_first(self, world: World) -> None:
        keeper = Timekeeper(world)
        now = world.clock.now()
        for name, due_at in {"third": now, "first": now - HOUR, "second": now - 1}.items():
            await keeper.add(name, due_at)
        await keeper.add("next", now + 2)
        await keeper.add("later", now + HOUR)
        due = await keeper.due()
        assert [record.job.name for record in due.jobs] == ["first", "second", "third"]
        assert (due.next_at, due.more) == (now + 2, False)
        assert await keeper.due() == due, "reading takes nothing"
        world.clock.advance(2)
        assert await keeper.names_due() == ["first", "second", "third", "next"]

    @over_the_store
    async def test_c5_at_most_so_many_due_jobs_come_at_once(self, world: World) -> None:
        keeper = Timekeeper(world)
        now = world.clock.now()
        for number in range(5):
            await keeper.add(f"job {number}", now - 5 + number)
        await keeper.add("later", now + HOUR)
        due = await keeper.due(most=3)
        assert [record.job.name for record in due.jobs] == ["job 0", "job 1", "job 2"]
        assert due.more
        due = await keeper.due(most=5)
        assert (len(due.jobs), due.more, due.next_at) == (5, False, now + HOUR)

    @over_the_store
    async def test_c5_nothing_is_due_where_there_is_nothing(self, world: World) -> None:
        keeper = Timekeeper(world)
        assert await keeper.due() == DueJobs()
        await keeper.add_settled("settled")
        assert await keeper.due() == DueJobs()

    @over_the_store
    async def test_c10_a_disabled_job_is_never_due(self, world: World) -> None:
        keeper = Timekeeper(world)
        now = world.clock.now()
        await keeper.add("born disabled", enabled=False)
        job = await keeper.add("job", now + 5)
        off = msgspec.structs.replace(job, enabled=False)
        assert await world.store.change_job(off, Ticking(1, next_at=now))
        assert await keeper.due() == DueJobs()
        assert await world.store.change_job(job, Ticking(2, next_at=now))
        assert await keeper.names_due() == ["job"]
        (kept,) = await keeper.advance(await keeper.step(job, enabled=False, next_in=0))
        assert kept == ()
        assert await keeper.due() == DueJobs()
        assert (await keeper.known(job)).job == off

    @over_the_store
    async def test_c10_a_wake_makes_a_job_due_beside_its_schedule(self, world: World) -> None:
        keeper = Timekeeper(world)
        now = world.clock.now()
        cadence = await keeper.add("cadence", now + HOUR)
        settled = await keeper.add_settled("settled")
        assert await world.store.change_job(cadence, Ticking(1, now + HOUR, wake_at=now + 3))
        assert (await keeper.due()).next_at == now + 3
        assert await world.store.change_job(settled, Ticking(1, wake_at=now - 1))
        assert await world.store.change_job(cadence, Ticking(2, now + HOUR, wake_at=now))
        assert await keeper.names_due() == ["settled", "cadence"]

    @over_the_store
    async def test_x7_a_job_that_somebody_looks_after_is_not_due_meanwhile(
        self, world: World
    ) -> None:
        keeper = Timekeeper(world)
        now = world.clock.now()
        job = await keeper.add("job", now - 10)
        claimed = Ticking(1, next_at=now - 10, claimed_until=now + MINUTE)
        await keeper.advance(await keeper.step(job, ticking=claimed))
        due = await keeper.due()
        assert (due.jobs, due.next_at) == ((), now + MINUTE)
        await keeper.add("second", now + MINUTE - 1)
        world.clock.advance(MINUTE)
        assert await keeper.names_due() == ["second", "job"], "by when each became due"

    @over_the_store
    async def test_x7_jobs_that_need_what_a_node_has_not_are_for_others(self, world: World) -> None:
        keeper = Timekeeper(world)
        now = world.clock.now()
        await keeper.add("plain", now - 1)
        await keeper.add("function", now - 4, gate=Gate(function="look"))
        await keeper.add("command", now - 2, gate=Gate(argv=("true",)))
        beat = HeartbeatSettings(checklist="HEARTBEAT.md")
        await keeper.add("beat", now - 3, heartbeat=beat)
        await keeper.add("their beat", now + 5, agent=B, heartbeat=beat)
        await keeper.add("kept beat", now - 5, agent=B, heartbeat=HeartbeatSettings())
        assert await keeper.due() == await keeper.due("agent:c", "function:other", "look")
        assert not (await world.store.due_jobs(now, 9, ())).jobs, "nobody knows their agents"
        due = await keeper.due()
        assert [record.job.name for record in due.jobs] == ["plain"]
        assert (due.next_at, due.more) == (None, False), "what is for others wakes nobody here"
        assert not (await keeper.due(most=1)).more
        assert await keeper.names_due("function:look", "gate:a") == ["function", "command", "plain"]
        assert await keeper.names_due("checklist:b") == ["kept beat", "plain"]
        due = await keeper.due("function:look", "gate:a", "file:a", "file:b")
        names = [record.job.name for record in due.jobs]
        assert (names, due.next_at) == (["function", "beat", "command", "plain"], now + 5)

    @over_the_store
    async def test_c9_how_runs_ended_is_counted_in_their_order(self, world: World) -> None:
        keeper = Timekeeper(world)
        job = await keeper.add("often", world.clock.now() + 5)
        other = await keeper.add("seldom", world.clock.now() + 5)

        def ended(name: str, state: State, of: Job = job) -> Ending:
            return Ending(
                of.id, RunId(name), state, 7, 6, "no ☎\0" if state is State.FAILED else ""
            )

        tally = world.store.tally
        first = [ended("r1", State.DONE), ended("r2", State.FAILED), ended("r3", State.FAILED)]
        assert await tally([*first, ended("r4", State.FAILED, other)]) == {job.id: 2, other.id: 1}
        assert await tally(first) == {job.id: 2}, "an answer was lost: counted once"
        assert await tally([ended("r5", State.CANCELLED)]) == {job.id: 2}
        assert await tally([ended("r6", State.FAILED)]) == {job.id: 3}
        record = await world.store.find_job(job.id)
        assert record is not None
        assert record.tally is not None
        assert msgspec.structs.replace(record.tally, counted=()) == Tally(
            record.ticking.since, 3, RunId("r6"), State.FAILED, 7, 6, "no ☎\0"
        )
        (due, _) = (await keeper.due(now=world.clock.now() + 9)).jobs
        assert due.tally == record.tally
        gone = ended("r7", State.FAILED, msgspec.structs.replace(job, id=JobId("gone")))
        assert await tally([gone]) == {}

    @over_the_store
    async def test_c10_enabling_a_job_begins_a_new_count(self, world: World) -> None:
        keeper = Timekeeper(world)
        job = await keeper.add("often", world.clock.now() + 5)
        await world.store.tally([Ending(job.id, RunId("r1"), State.FAILED, 7)])
        known = await world.store.find_job(job.id)
        assert known is not None
        since = msgspec.structs.replace(known.ticking, since=99)
        assert await world.store.change_job(job, since)
        counted = await world.store.tally([Ending(job.id, RunId("r2"), State.FAILED, 8)])
        assert counted == {job.id: 1}

    @over_the_store
    async def test_c10_a_tally_goes_with_its_job(self, world: World) -> None:
        keeper = Timekeeper(world)
        job = await keeper.add("often", world.clock.now() + 5)
        await world.store.tally([Ending(job.id, RunId("r1"), State.FAILED, 7)])
        assert await world.store.remove_job(job.id)
        assert await world.store.add_job(job, Ticking())
        record = await world.store.find_job(job.id)
        assert record is not None
        assert record.tally is None

    @over_the_store
    async def test_x7_a_change_of_what_a_job_needs_is_seen(self, world: World) -> None:
        keeper = Timekeeper(world)
        now = world.clock.now()
        job = await keeper.add()
        gated = msgspec.structs.replace(job, gate=Gate(function="look"))
        assert await world.store.change_job(gated, Ticking(1, next_at=now))
        assert await keeper.names_due() == []
        assert await keeper.names_due("function:look") == ["job"]

    @over_the_store
    async def test_c7_who_is_due_comes_with_its_latest_runs(self, world: World) -> None:
        keeper = Timekeeper(world)
        job = await keeper.add()
        done, runs = await keeper.fire(job, due_at=1), await keeper.fire(job, due_at=2)
        await world.carry_through(done)
        await world.record(world.start(runs))
        world.clock.advance(HOUR)
        (record,) = (await keeper.due()).jobs
        assert record.recent == (past_of(runs, State.RUNNING), past_of(done, State.DONE))
        assert (record.job, record.ticking) == (job, (await keeper.known(job)).ticking)

    @over_the_store
    async def test_c1_settled_jobs_are_those_that_will_not_fire_again(self, world: World) -> None:
        keeper = Timekeeper(world)
        now = world.clock.now()
        await keeper.add("due")
        await keeper.add("later", now + HOUR)
        await keeper.add_settled("disabled", enabled=False)
        woken = await keeper.add_settled("woken")
        assert await world.store.change_job(woken, Ticking(1, wake_at=now + HOUR))
        once = await keeper.add("once", delete_after_run=True)
        run = await keeper.fire(once, next_in=None)
        (record,) = await world.store.settled_jobs(10)
        assert (record.job, record.recent) == (once, (past_of(run, State.QUEUED),))
        await world.carry_through(run)
        (record,) = await world.store.settled_jobs(10)
        assert record.recent == (past_of(run, State.DONE),)
        for number in range(4):
            await keeper.add_settled(f"settled {number}", delete_after_run=True)
        assert len(await world.store.settled_jobs(3)) == 3
        assert len(await world.store.settled_jobs(10)) == 5
        assert await world.store.remove_job(once.id)
        names = {record.job.name for record in await world.store.settled_jobs(10)}
        assert names == {f"settled {number}" for number in range(4)}

    # Firings.

    @over_the_store
    async def test_c5_a_firing_makes_its_run_and_moves_the_job_on(self, world: World) -> None:
        keeper = Timekeeper(world)
        now = world.clock.now()
        job = await keeper.add()
        run = keeper.run(job, now, text=ODD)
        after = Ticking(1, now + HOUR, now + MINUTE, now + SECOND, now, "why")
        (admissions,) = await keeper.advance(await keeper.step(job, run, ticking=after))
        assert admissions is not None
        (granted,) = admissions
        assert isinstance(granted, Granted)
        assert (granted.seq, granted.memory, granted.fresh) == (1, None, True)
        view = await view_of(world.store, run)
        assert (view.run, view.state, view.attempt) == (run, State.QUEUED, 0)
        assert await world.listed(session=run.session) == [run.id]
        record = await keeper.known(job)
        assert record.ticking == msgspec.structs.replace(after, version=2)
        assert record.recent == (past_of(run, State.QUEUED),)
        await world.carry_through(run)
        await world.record(world.release(run))
        assert await world.state(run) is State.DONE

    @over_the_store
    async def test_c5_what_was_decided_by_an_old_version_is_dropped_whole(
        self, world: World
    ) -> None:
        keeper = Timekeeper(world)
        jobs = [await keeper.add(name) for name in "abc"]
        now = world.clock.now()
        steps = [
            await keeper.step(job, keeper.run(job, now), notices=(keeper.notice(job.name),))
            for job in jobs
        ]
        paused = msgspec.structs.replace(jobs[1], enabled=False)
        assert await world.store.change_job(paused, Ticking(1))
        answers = await keeper.advance(*steps)
        assert [answer is None for answer in answers] == [False, True, False]
        dropped = steps[1].runs[0]
        assert await world.store.find(dropped.id) is None
        assert len(await world.listed()) == 2
        assert await keeper.log(jobs[1]) == []
        assert await keeper.known(jobs[1]) == JobRecord(paused, Ticking(2))
        said = await world.store.take_deliveries(["telegram"], 9, now, now + MINUTE)
        assert sorted(delivery.id for delivery in said) == ["a", "c"]
        assert await keeper.advance(*steps) == [None] * 3, "repeating it makes nothing twice"
        assert len(await world.listed()) == 2
        assert len(await keeper.log()) == 2

    @over_the_store
    async def test_c5_of_many_decisions_at_once_about_one_job_one_is_kept(
        self, world: World
    ) -> None:
        keeper = Timekeeper(world)
        job = await keeper.add()
        now = world.clock.now()
        steps = [await keeper.step(job, keeper.run(job, now + number)) for number in range(8)]
        answers = await asyncio.gather(*(keeper.advance(step) for step in steps))
        assert sum(answer != [None] for answer in answers) == 1
        assert len(await world.listed()) == 1
        assert len(await keeper.log(job)) == 1
        assert await keeper.version(job) == 2

    @over_the_store
    async def test_c5_a_job_and_a_due_time_make_one_run(self, world: World) -> None:
        keeper = Timekeeper(world)
        job, other = await keeper.add("job"), await keeper.add("other")
        now = world.clock.now()
        first = await keeper.fire(job, due_at=now)
        before = await keeper.known(job)
        again = await keeper.step(job, keeper.run(job, now), notices=(keeper.notice(),))
        theirs = await keeper.step(other, keeper.run(other, now))
        answers = await keeper.advance(again, theirs)
        assert [answer is None for answer in answers] == [True, False]
        assert await keeper.known(job) == before
        assert await world.store.find(again.runs[0].id) is None
        assert [line.run_id for line in await keeper.log(job)] == [first.id]
        assert list(await world.store.take_deliveries(["telegram"], 9, now, now + 1)) == []
        await keeper.skip(job)
        await keeper.skip(job)
        assert len(await keeper.log(job)) == 3, "lines without a run may be many"

    @over_the_store
    async def test_c6_several_runs_may_be_made_at_once(self, world: World) -> None:
        keeper = Timekeeper(world)
        job = await keeper.add()
        now = world.clock.now()
        runs = [keeper.run(job, now - number * HOUR, "job's own") for number in (2, 1, 0)]
        kinds = (Fired.LATE, Fired.LATE, Fired.ON_TIME)
        lines = tuple(
            keeper.line(job, run.firing.due_at, kind, run)
            for run, kind in zip(runs, kinds, strict=True)
            if run.firing is not None
        )
        missed = keeper.line(job, now - 3 * HOUR, Fired.MISSED, reason="window", count=7)
        step = await keeper.step(job, *runs, entries=(missed, *lines))
        (admissions,) = await keeper.advance(step)
        assert admissions is not None
        grants = [admission for admission in admissions if isinstance(admission, Granted)]
        assert [granted.seq for granted in grants] == [1, 2, 3]
        assert len({granted.epoch for granted in grants}) == 1
        assert [granted.fresh for granted in grants] == [True, False, False]
        log = await keeper.log(job)
        assert [line.run_id for line in log] == [*(run.id for run in reversed(runs)), None]
        assert [line.kind for line in log] == [Fired.ON_TIME, Fired.LATE, Fired.LATE, Fired.MISSED]
        assert (log[-1].reason, log[-1].count) == ("window", 7)
        assert await world.listed() == [run.id for run in reversed(runs)]

    @over_the_store
    async def test_c5_many_jobs_go_on_at_once(self, world: World) -> None:
        keeper = Timekeeper(world)
        now = world.clock.now()
        jobs = [await keeper.add(f"job {number:02}", now - 50 + number) for number in range(50)]
        steps = [await keeper.step(job, keeper.run(job, now)) for job in jobs]
        answers = await keeper.advance(*steps)
        assert all(answer is not None for answer in answers)
        assert len(await world.listed(limit=100)) == 50
        assert len(await keeper.log()) == 50
        assert (await keeper.due()).jobs == ()
        for job, step in zip(jobs, steps, strict=True):
            assert (await keeper.known(job)).recent == (past_of(step.runs[0], State.QUEUED),)

    @over_the_store
    async def test_s1_firings_of_many_jobs_in_one_session_are_in_order(self, world: World) -> None:
        keeper = Timekeeper(world)
        now = world.clock.now()
        jobs = [await keeper.add(f"job {number}") for number in range(4)]
        steps = [await keeper.step(job, keeper.run(job, now, "main")) for job in jobs]
        assert await world.store.remove_job(jobs[1].id)
        answers = await keeper.advance(*steps)
        assert answers[1] is None
        grants = [world.granted(step.runs[0]) for step in (steps[0], *steps[2:])]
        assert [granted.seq for granted in grants] == [1, 2, 3], "no place for what was dropped"
        assert len({granted.epoch for granted in grants}) == 1
        assert [granted.fresh for granted in grants] == [True, False, False]

    @over_the_store
    async def test_c5_a_run_joins_the_session_that_is_this_nodes(self, world: World) -> None:
        keeper = Timekeeper(world)
        job = await keeper.add()
        message = await world.admit("main")
        for claim in (True, False):
            run = await keeper.fire(job, session="main", claim=claim, due_at=int(claim))
            granted = world.granted(run)
            assert granted.epoch == world.granted(message).epoch
            assert not granted.fresh
        assert len(await world.listed(session="main")) == 3

    @over_the_store
    async def test_c5_without_a_claim_a_firing_is_stored_all_the_same(self, world: World) -> None:
        keeper = Timekeeper(world)
        job = await keeper.add()
        run = keeper.run(job, world.clock.now())
        (admissions,) = await keeper.advance(await keeper.step(job, run, claim=False))
        assert admissions is not None
        assert isinstance(admissions[0], Granted) or admissions == (Elsewhere(1, owned=False),)
        assert await world.state(run) is State.QUEUED
        assert (await keeper.known(job)).recent == (past_of(run, State.QUEUED),)

    @over_the_store
    async def test_c1_a_job_that_is_done_goes_with_its_last_firing(self, world: World) -> None:
        keeper = Timekeeper(world)
        job = await keeper.add()
        run = await keeper.fire(job, delete=True)
        assert await world.store.find_job(job.id) is None
        assert await keeper.listed() == []
        assert await keeper.due() == DueJobs()
        assert await world.state(run) is State.QUEUED
        assert [line.run_id for line in await keeper.log(job)] == [run.id]
        await keeper.add("job", id=JobId("its name is free"))

    @over_the_store
    async def test_c9_a_job_that_is_paused_says_why(self, world: World) -> None:
        keeper = Timekeeper(world)
        job = await keeper.add()
        now = world.clock.now()
        notice = keeper.notice(text=ODD)
        ticking = Ticking(1, paused="10 failures in a row")
        step = await keeper.step(job, enabled=False, ticking=ticking, notices=(notice,))
        assert await keeper.advance(step) == [()]
        record = await keeper.known(job)
        assert (record.job.enabled, record.ticking.paused) == (False, "10 failures in a row")
        assert await keeper.listed(enabled=False) == ["job"]
        said = await world.store.take_deliveries(["telegram"], 9, now, now + MINUTE)
        assert list(said) == [notice]

    # The latest runs.

    @over_the_store
    async def test_c7_a_job_knows_how_its_latest_runs_stand(self, world: World) -> None:
        keeper = Timekeeper(world)
        job = await keeper.add()
        runs = [await keeper.fire(job, due_at=number) for number in range(5)]
        await keeper.skip(job)
        done, failed, cancelled, running, pending = runs
        await world.carry_through(done)
        await world.carry_through(failed, FAILED)
        await world.record(world.finish(cancelled, STOPPED, attempt=0), world.start(running))
        epoch = world.granted(pending).epoch
        await world.record(Enqueue(pending, State.PENDING, 0, epoch, world.clock.now() + HOUR))
        states = (State.PENDING, State.RUNNING, State.CANCELLED, State.FAILED, State.DONE)
        record = await keeper.known(job)
        assert record.recent == tuple(
            past_of(run, state) for run, state in zip(reversed(runs), states, strict=True)
        )
        await world.record(world.finish(running))
        assert (await keeper.known(job)).recent[1].state is State.DONE

    @over_the_store
    async def test_c9_a_job_is_judged_by_so_many_runs(self, world: World) -> None:
        keeper = Timekeeper(world)
        job = await keeper.add()
        runs = []
        for number in range(MAX_RECENT + 5):
            runs.append(await keeper.fire(job, due_at=number))
            await keeper.skip(job)
        recent = (await keeper.known(job)).recent
        assert len(recent) == MAX_RECENT
        assert [past.run_id for past in recent] == [run.id for run in runs[:4:-1]]
        world.clock.advance(HOUR)
        assert [record.recent for record in (await keeper.due()).jobs] == [recent]

    @over_the_store
    async def test_c7_skipped_firings_do_not_hide_the_run_that_they_wait_for(
        self, world: World
    ) -> None:
        keeper = Timekeeper(world)
        job = await keeper.add()
        run = await keeper.fire(job)
        await world.record(world.start(run))
        for _ in range(250):
            await keeper.skip(job)
        assert (await keeper.known(job)).recent == (past_of(run, State.RUNNING),)

    # The log.

    @over_the_store
    async def test_c11_the_log_follows_each_run(self, world: World) -> None:
        keeper = Timekeeper(world)
        job = await keeper.add()
        due_at = world.clock.now()
        world.clock.advance(SECOND)
        run = await keeper.fire(job, due_at=due_at)
        asked = keeper.line(job, due_at, run=run)
        assert plain(await keeper.log(job)) == [
            msgspec.structs.replace(asked, state=State.QUEUED, attempts=0)
        ]
        started_at = world.clock.advance(SECOND)
        await world.record(world.start(run))
        (line,) = plain(await keeper.log(job))
        assert line == msgspec.structs.replace(
            asked, state=State.RUNNING, attempts=1, started_at=started_at
        )
        assert line.lateness == 2 * SECOND
        finished_at = world.clock.advance(SECOND)
        outcome = Outcome(
            State.DONE, reply=Reply("well", data={"n": 1}), tokens_in=120, tokens_out=7
        )
        finish = msgspec.structs.replace(world.finish(run, outcome), started_at=started_at)
        await world.record(finish)
        (line,) = plain(await keeper.log(job))
        assert line == msgspec.structs.replace(
            asked,
            state=State.DONE,
            attempts=1,
            started_at=started_at,
            finished_at=finished_at,
            outcome=Outcome(State.DONE, reply=Reply("well"), tokens_in=120, tokens_out=7),
        )
        (last,) = plain([await _last(keeper, job)])
        assert last == line

    @over_the_store
    async def test_c11_the_log_agrees_with_what_is_known_of_the_runs(self, world: World) -> None:
        keeper = Timekeeper(world)
        job = await keeper.add()
        runs = [await keeper.fire(job, due_at=number) for number in range(4)]
        await world.carry_through(runs[0], FAILED)
        await world.record(world.start(runs[1]))
        await world.record(world.finish(runs[2], STOPPED, attempt=0))
        for run, line in zip(reversed(runs), await keeper.log(job), strict=True):
            view = await view_of(world.store, run)
            assert (line.state, line.attempts) == (view.state, view.attempt)
            assert (line.started_at, line.finished_at) == (view.started_at, view.finished_at)
            assert line.outcome == view.outcome

    @pytest.mark.parametrize("kind", list(Fired))
    def test_c11_a_line_is_kept_as_it_was_written(self, kind: Fired) -> None:
        @over_the_store
        async def main(self: TimetableContract, world: World) -> None:
            keeper = Timekeeper(world)
            job = await keeper.add()
            now = world.clock.advance(5)
            line = Entry(job.id, now - 3, kind, now, reason=ODD, count=12_345)
            await keeper.advance(await keeper.step(job, entries=(line,)))
            assert plain(await keeper.log(job)) == [line]

        main(self)

    @pytest.mark.parametrize(
        ("said", "shown"),
        [
            ("a" * (MAX_SUMMARY - 1), MAX_SUMMARY - 1),
            ("a" * MAX_SUMMARY, MAX_SUMMARY),
            ("a" * (MAX_SUMMARY + 1), MAX_SUMMARY),
            ("é" * MAX_SUMMARY, MAX_SUMMARY // 2),
            ("a" + "é" * MAX_SUMMARY, MAX_SUMMARY // 2),
            ("ab" + "\N{GRINNING FACE}" * MAX_SUMMARY, MAX_SUMMARY // 4 + 1),
            ("a" + "\N{EURO SIGN}" * 100_000, 1 + (MAX_SUMMARY - 1) // 3),
            ("\0" * (MAX_SUMMARY + 1), MAX_SUMMARY),
        ],
        ids=["below", "just", "above", "two bytes", "odd", "four bytes", "three bytes", "nul"],
    )
    def test_c11_a_summary_is_cut_on_a_character_boundary(self, said: str, shown: int) -> None:
        @over_the_store
        async def main(self: TimetableContract, world: World) -> None:
            keeper = Timekeeper(world)
            job = await keeper.add()
            run = await keeper.fire(job)
            files = (Attachment("a.png", "image/png", "file:///a.png"),)
            outcome = Outcome(State.DONE, reply=Reply(said, files, {"big": "data"}))
            await world.carry_through(run, outcome)
            cut = Outcome(State.DONE, reply=Reply(said[:shown], files))
            assert len(said[:shown].encode()) <= MAX_SUMMARY
            (line,) = await keeper.log(job)
            assert line.outcome == cut
            assert (await _last(keeper, job)).outcome == cut
            page = await world.store.list_jobs(JobQuery())
            assert [record.last for record in page.jobs] == [line]
            assert (await view_of(world.store, run)).outcome == outcome, "the run has all of it"

        main(self)

    @over_the_store
    async def test_c1_the_last_line_is_the_latest_whose_run_has_ended(self, world: World) -> None:
        keeper = Timekeeper(world)
        job = await keeper.add()
        first, second, third = [await keeper.fire(job, due_at=number) for number in range(3)]
        assert (await keeper.known(job)).last is None
        await world.carry_through(second, FAILED)
        assert (await _last(keeper, job)).run_id == second.id
        await world.carry_through(first)
        line = await _last(keeper, job)
        assert (line.run_id, line.outcome) == (second.id, FAILED), "the latest line, not end"
        await keeper.skip(job)
        await world.carry_through(third)
        assert (await _last(keeper, job)).run_id == third.id

    @over_the_store
    async def test_c11_the_log_is_paged_the_newest_first(self, world: World) -> None:
        keeper = Timekeeper(world)
        job, other = await keeper.add("job"), await keeper.add("other")
        for number in range(7):
            await keeper.fire(job, due_at=number)
            await keeper.fire(other, due_at=100 + number)
        seen: list[int] = []
        cursor: str | None = None
        for size in (3, 3, 1):
            page = await world.store.job_log(LogQuery(job.id, 3, cursor))
            assert len(page.entries) == size
            seen += [line.due_at for line in page.entries]
            cursor = page.cursor
        assert cursor is None
        assert seen == [6, 5, 4, 3, 2, 1, 0]
        assert (await world.store.job_log(LogQuery(job.id, 7))).cursor is None
        everything = await keeper.log()
        assert [line.due_at for line in everything[:4]] == [106, 6, 105, 5]
        numbers = [line.number for line in everything]
        assert numbers == sorted(set(numbers), reverse=True)
        assert await keeper.log(a_job("nope", 0)) == []

    @over_the_store
    async def test_c11_lines_that_come_while_paging_neither_repeat_nor_hide_others(
        self, world: World
    ) -> None:
        keeper = Timekeeper(world)
        job = await keeper.add()
        runs = [await keeper.fire(job, due_at=number) for number in range(4)]
        for query in (LogQuery(job.id, 2), LogQuery(limit=2)):
            page = await world.store.job_log(query)
            await keeper.skip(job)
            await world.record(world.start(runs.pop()))
            rest = await world.store.job_log(
                msgspec.structs.replace(query, limit=10, cursor=page.cursor)
            )
            dues = [line.due_at for line in (*page.entries, *rest.entries)]
            assert [due_at for due_at in dues if due_at < 4] == [3, 2, 1, 0]
            assert len(dues) == len(set(dues))
            world.clock.advance(1)

    @pytest.mark.parametrize("cursor", ["x", "-1", "", "1" * 30, "1; drop table firings"])
    def test_a_cursor_that_no_page_of_the_log_gave_is_refused(self, cursor: str) -> None:
        @over_the_store
        async def main(self: TimetableContract, world: World) -> None:
            await Timekeeper(world).fire(await Timekeeper(world).add())
            with pytest.raises(InvalidInput) as refused:
                await world.store.job_log(LogQuery(cursor=cursor))
            assert refused.value.field == "cursor"

        main(self)

    # Forgetting.

    @over_the_store
    async def test_d8_lines_are_forgotten_after_their_retention(self, world: World) -> None:
        keeper = Timekeeper(world)
        job = await keeper.add()
        await keeper.skip(job)
        done, runs = await keeper.fire(job, due_at=1), await keeper.fire(job, due_at=2)
        await world.carry_through(done)
        await world.record(world.start(runs))
        world.clock.advance(self.settings.retention - 1)
        await world.store.prune(1_000)
        assert len(await keeper.log(job)) == 3
        await keeper.skip(job, reason="new")
        world.clock.advance(1)
        await world.store.prune(1_000)
        log = await keeper.log(job)
        assert [(line.run_id, line.reason) for line in log] == [(None, "new"), (runs.id, "")]
        assert (await keeper.known(job)).recent == (past_of(runs, State.RUNNING),)
        world.clock.advance(self.settings.retention)
        await world.store.prune(1_000)
        assert [line.run_id for line in await keeper.log(job)] == [runs.id]
        await world.record(world.finish(runs))
        await world.store.prune(1_000)
        assert await keeper.log(job) == []
        assert await keeper.known(job) == JobRecord(job, (await keeper.known(job)).ticking)

    @over_the_store
    async def test_d8_a_line_outlives_its_run(self, world: World) -> None:
        keeper = Timekeeper(world)
        job = await keeper.add()
        run = keeper.run(job, world.clock.now())
        # Decided by a clock that is ahead of this one, so that the run is past its retention first.
        at = world.clock.now() + 10 * MINUTE
        line = keeper.line(job, world.clock.now(), run=run, at=at)
        await keeper.advance(await keeper.step(job, run, entries=(line,)))
        await world.carry_through(run)
        world.clock.advance(self.settings.retention)
        assert await world.store.prune(1_000) == 1
        assert await world.store.find(run.id) is None
        assert plain(await keeper.log(job)) == [line]
        record = await keeper.known(job)
        assert (record.recent, record.last) == ((), None)

    @over_the_store
    async def test_d8_the_log_of_a_removed_job_is_forgotten_too(self, world: World) -> None:
        keeper = Timekeeper(world)
        job = await keeper.add()
        run = await keeper.fire(job, delete=True)
        await world.carry_through(run)
        world.clock.advance(self.settings.retention)
        await world.store.prune(1_000)
        assert await keeper.log() == []

    # Texts.

    @over_the_store
    async def test_h1_a_text_is_kept_under_its_name(self, world: World) -> None:
        store = world.store
        assert await store.text("checklist a") is None
        await store.keep_text("checklist a", "- look at the mail")
        await store.keep_text("checklist b", "")
        for _ in range(2):
            await store.keep_text("checklist a", ODD)
        assert await store.text("checklist a") == ODD
        assert await store.text("checklist b") == ""
        for _ in range(2):
            await store.keep_text("checklist a", None)
        assert await store.text("checklist a") is None
        assert await store.text("checklist b") == ""

    # Hints.

    @over_the_nodes
    async def test_c12_a_node_hears_of_every_change_of_a_job(self, cluster: Cluster) -> None:
        node = await cluster.node("a")
        keeper = Timekeeper(node)
        job = await keeper.add()
        await node.heard(Hint.JOBS)
        assert await node.store.change_job(job, Ticking(1, next_at=5))
        await node.heard(Hint.JOBS)
        assert await node.store.remove_job(job.id)
        await node.heard(Hint.JOBS)

    @over_the_nodes
    async def test_c12_a_firing_is_told_only_where_something_is_due_earlier(
        self, cluster: Cluster
    ) -> None:
        node = await cluster.node("a")
        keeper = Timekeeper(node)
        now = cluster.clock.now()
        job = await keeper.add()
        await node.heard(Hint.JOBS)
        settled = await keeper.add_settled("settled")
        await node.heard(Hint.JOBS)
        run = await keeper.fire(job)
        await keeper.fire(settled, next_in=None)
        await node.carry_through(run)
        assert Hint.JOBS not in node.hints, "it is due later than before"
        woken = Ticking(2, next_at=now + HOUR, wake_at=now + MINUTE)
        assert await keeper.advance(await keeper.step(job, ticking=woken)) == [()]
        await node.heard(Hint.JOBS)
        again = Ticking(2, next_at=now + HOUR)
        assert await keeper.advance(await keeper.step(settled, ticking=again)) == [()]
        await node.heard(Hint.JOBS)


async def _last(keeper: Timekeeper, job: Job) -> Entry:
    last = (await keeper.known(job)).last
    assert last is not None
    return last
