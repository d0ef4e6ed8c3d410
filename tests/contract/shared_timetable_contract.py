"""What a store must do about time that several nodes share: each firing once, whoever is quicker (C-5)."""

import asyncio

import msgspec

from headway import Route, State
from headway.core.actions import Deliver
from headway.model.errors import StoreUnavailable
from headway.model.job import Ticking
from headway.model.places import Place
from headway.model.run import AgentName
from headway.model.time import DAY, HOUR, MINUTE
from headway.ports import Elsewhere, Granted, Hint, LetterQuery
from tests.contract.cluster import Cluster, Node, over_the_nodes
from tests.contract.timekeeper import CRON, Timekeeper, a_job, past_of
from tests.contract.world import CHAT, Suite, view_of

ROUNDS = 12
"""How often a race is run."""


class SharedTimetableContract(Suite):
    """Derive from it, name the class `Test…`, and say how to make the stores of one database."""

    # One firing, one run.

    @over_the_nodes
    async def test_c5_of_two_nodes_that_read_the_same_job_one_fires_it(
        self, cluster: Cluster
    ) -> None:
        a, b = await cluster.pair()
        keepers = [Timekeeper(a), Timekeeper(b)]
        job = await keepers[0].add()
        steps = [await keeper.step(job, keeper.run(job, 1)) for keeper in keepers]
        assert await keepers[1].advance(steps[1]) != [None]
        assert await keepers[0].advance(steps[0]) == [None]
        for node in (a, b):
            assert await node.listed() == [steps[1].runs[0].id]
            assert await node.store.find(steps[0].runs[0].id) is None

    @over_the_nodes
    async def test_c5_however_they_race_each_job_fires_once(self, cluster: Cluster) -> None:
        nodes = [*await cluster.pair(), await cluster.node("c")]
        keepers = [Timekeeper(node) for node in nodes]
        jobs = [await keepers[0].add(f"job {number}") for number in range(10)]
        for _ in range(ROUNDS):
            now = cluster.clock.advance(HOUR)
            batches = []
            for place, keeper in enumerate(keepers):
                # Each reads them in another order, as a node may that has other abilities.
                mine = jobs[place:] + jobs[:place]
                batches.append([await keeper.step(job, keeper.run(job, now)) for job in mine])
            answers = await asyncio.gather(
                *(keeper.advance(*batch) for keeper, batch in zip(keepers, batches, strict=True))
            )
            won = [
                step.job
                for batch, kept in zip(batches, answers, strict=True)
                for step, admissions in zip(batch, kept, strict=True)
                if admissions is not None
            ]
            assert sorted(won) == sorted(job.id for job in jobs)
        assert len(await nodes[0].listed(limit=1_000)) == 10 * ROUNDS
        log = await keepers[1].log()
        assert len(log) == len({(line.job, line.due_at) for line in log}) == 10 * ROUNDS

    @over_the_nodes
    async def test_c10_of_a_firing_and_a_pause_the_earlier_one_counts(
        self, cluster: Cluster
    ) -> None:
        a, b = await cluster.pair()
        keeper = Timekeeper(a)
        for number in range(ROUNDS):
            job = await keeper.add(f"job {number}")
            step = await keeper.step(job, keeper.run(job, number))
            paused = msgspec.structs.replace(job, enabled=False)
            answers, changed = await asyncio.gather(
                keeper.advance(step), b.store.change_job(paused, Ticking(1))
            )
            assert (answers == [None]) is changed
            record = await keeper.known(job)
            assert record.job.enabled is not changed
            assert len(record.recent) == (not changed)
            assert (await a.store.find(step.runs[0].id) is None) is changed

    @over_the_nodes
    async def test_c10_of_a_firing_and_a_removal_nothing_is_left_by_half(
        self, cluster: Cluster
    ) -> None:
        a, b = await cluster.pair()
        keeper = Timekeeper(a)
        for number in range(ROUNDS):
            job = await keeper.add(f"job {number}")
            step = await keeper.step(job, keeper.run(job, number))
            (kept,), removed = await asyncio.gather(
                keeper.advance(step), b.store.remove_job(job.id)
            )
            assert removed
            assert await b.store.find_job(job.id) is None
            assert len(await keeper.log(job)) == (kept is not None)
            assert (await b.store.find(step.runs[0].id) is None) is (kept is None)

    @over_the_nodes
    async def test_c1_of_jobs_of_one_name_added_by_two_nodes_one_is_taken(
        self, cluster: Cluster
    ) -> None:
        a, b = await cluster.pair()
        for number in range(ROUNDS):
            name = f"job {number}"
            taken = await asyncio.gather(
                *(
                    node.store.add_job(a_job(name, 0, id=f"{node.name} {number}"), Ticking())
                    for node in (a, b)
                )
            )
            assert sum(taken) == 1
            record = await a.store.find_job_named(AgentName("a"), name)
            assert record == await b.store.find_job_named(AgentName("a"), name)
            assert record is not None

    @over_the_nodes
    async def test_c7_a_node_sees_how_the_runs_of_others_stand(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        job = await Timekeeper(a).add()
        run = await Timekeeper(a).fire(job)
        await a.record(a.start(run))
        keeper = Timekeeper(b)
        assert (await keeper.known(job)).recent == (past_of(run, State.RUNNING),)
        await a.record(a.finish(run))
        assert (await keeper.known(job)).recent == (past_of(run, State.DONE),)
        assert await keeper.log(job) == await Timekeeper(a).log(job)

    # Who decides for the session of a firing.

    @over_the_nodes
    async def test_n16_a_firing_in_a_session_of_another_node_is_news_there(
        self, cluster: Cluster
    ) -> None:
        a, b = await cluster.pair()
        message = await a.admit("s")
        a.hints.clear()
        keeper = Timekeeper(b)
        job = await keeper.add()
        run = keeper.run(job, 1, "s")
        step = await keeper.step(job, run)
        assert await keeper.advance(step) == [(Elsewhere(2, owned=True),)]
        await a.heard(Hint.NEWS)
        assert (await a.news("s", 1)).places == (Place(run, 2),)
        assert (await view_of(a.store, message)).state is State.QUEUED

    @over_the_nodes
    async def test_n16_a_firing_that_nobody_took_is_offered_to_others(
        self, cluster: Cluster
    ) -> None:
        a, b = await cluster.pair()
        keeper = Timekeeper(b)
        job = await keeper.add()
        a.hints.clear()
        run = await keeper.fire(job, claim=False)
        await a.heard(Hint.WORK)
        claims = await a.store.claim({CRON: 9}, [job.agent], cluster.clock.now())
        (holding,) = claims.holdings
        assert holding.places == (Place(run, 1),)
        a.take(holding)
        await a.carry_through(run)
        assert (await keeper.known(job)).recent == (past_of(run, State.DONE),)

    @over_the_nodes
    async def test_n4_a_dead_node_takes_nothing_by_a_firing(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        keeper = Timekeeper(a)
        job = await keeper.add()
        run = keeper.run(job, 1)
        step = await keeper.step(job, run)
        await b.bury(a)
        try:
            (admissions,) = await keeper.advance(step)
        except StoreUnavailable:
            admissions = None
        assert not any(isinstance(one, Granted) for one in admissions or ())
        assert (await b.view(a)).sessions == 0
        # Kept or not, it is whole: either the job is where it was, or the run waits to be claimed.
        record = await Timekeeper(b).known(job)
        claims = await b.store.claim({CRON: 9}, [job.agent], cluster.clock.now())
        places = [place for holding in claims.holdings for place in holding.places]
        if admissions is None:
            assert (record.ticking.version, places) == (1, [])
        else:
            assert (record.ticking.version, places) == (2, [Place(run, 1)])

    # Hints (C-12).

    @over_the_nodes
    async def test_c12_every_change_of_a_job_is_told_to_all_nodes(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        keeper = Timekeeper(a)
        job = await keeper.add()
        await _all_heard(a, b)
        assert await a.store.change_job(job, Ticking(1, next_at=5))
        await _all_heard(a, b)
        now = cluster.clock.now()
        earlier = Ticking(2, next_at=5, wake_at=now - 5)
        later = Ticking(3, next_at=now + HOUR)
        for ticking in (later, earlier):
            assert await keeper.advance(await keeper.step(job, ticking=ticking)) == [()]
        await _all_heard(a, b)
        assert await a.store.remove_job(job.id)
        await _all_heard(a, b)

    @over_the_nodes
    async def test_c12_a_process_that_is_no_node_is_heard_too(self, cluster: Cluster) -> None:
        """N-21: the command line adds and changes jobs beside a node that runs."""
        a = await cluster.node("a")
        guest = await cluster.guest()
        keeper = Timekeeper(guest)
        job = await keeper.add()
        await a.heard(Hint.JOBS)
        assert await Timekeeper(a).names_due() == ["job"]
        assert await guest.store.change_job(job, Ticking(1, next_at=5))
        await a.heard(Hint.JOBS)
        woken = Ticking(2, next_at=5, wake_at=1)
        assert await keeper.advance(await keeper.step(job, ticking=woken)) == [()]
        await a.heard(Hint.JOBS)
        assert await guest.store.remove_job(job.id)
        await a.heard(Hint.JOBS)
        assert await Timekeeper(a).names_due() == []

    # What is said.

    @over_the_nodes
    async def test_h2_the_same_is_said_once_over_all_nodes(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        runs = [await a.admit("s"), await b.admit("t")]
        for number in range(ROUNDS):
            until = cluster.clock.now() + DAY
            await asyncio.gather(
                *(
                    node.record(
                        Deliver(
                            msgspec.structs.replace(
                                node.delivery(run, number), once=f"k{number}", once_until=until
                            )
                        )
                    )
                    for node, run in zip((a, b), runs, strict=True)
                )
            )
            waiting = (await a.store.letters(LetterQuery(dead=False))).letters
            assert len(waiting) == number + 1

    @over_the_nodes
    async def test_n9_what_an_old_owner_says_silences_nobody(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        run = await a.admit()
        until = cluster.clock.now() + DAY
        late = msgspec.structs.replace(a.delivery(run), once="k", once_until=until)
        await b.bury(a)
        await b.take_over()
        recorded = await a.store.record([Deliver(late)])
        assert recorded.lost == ((run.session, a.granted(run).epoch),)
        said = msgspec.structs.replace(b.delivery(run, 2), once="k", once_until=until)
        await b.record(Deliver(said))
        (waits,) = (await a.store.letters(LetterQuery(dead=False))).letters
        assert waits == msgspec.structs.replace(said, due_at=said.first_at)

    @over_the_nodes
    async def test_every_node_reads_the_same_letters_texts_and_routes(
        self, cluster: Cluster
    ) -> None:
        a, b = await cluster.pair()
        run = await a.admit()
        said = a.delivery(run)
        await a.record(Deliver(said))
        await a.store.settle_delivery(said, error="gone")
        await a.store.keep_text("checklist", "- mail")
        await a.store.note_routes({AgentName("a"): CHAT}, 10)
        await b.store.note_routes({AgentName("a"): Route("web")}, 9)
        for node in (a, b):
            (letter,) = (await node.store.letters(LetterQuery())).letters
            assert letter == msgspec.structs.replace(said, tries=1, error="gone")
            assert await node.store.text("checklist") == "- mail"
            assert await node.store.last_route(AgentName("a")) == CHAT
        now = cluster.clock.now()
        retried = await asyncio.gather(*(node.store.retry_letter(said.id, now) for node in (a, b)))
        assert sorted(retried) == [False, True]
        (again,) = await b.store.take_deliveries(["telegram"], 9, now, now + MINUTE)
        assert again == said


async def _all_heard(*nodes: Node) -> None:
    for node in nodes:
        await node.heard(Hint.JOBS)
