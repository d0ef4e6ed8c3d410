"""Reading status never writes (D-8): whatever is asked for, and however often."""

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Sequence

from headway.core.actions import Deliver
from headway.model.run import RunId
from headway.model.token import Token
from headway.model.words import Scope, Source, State, WorkerState
from headway.ports import (
    JobQuery,
    LetterQuery,
    LogQuery,
    RunQuery,
    SnapshotQuery,
    Store,
    WorkerQuery,
)
from tests.contract.timekeeper import Timekeeper
from tests.contract.workers_contract import SNAPSHOT, a_worker
from tests.contract.world import Suite, World, over_the_store

ROUNDS = 50
"""Times the number of questions: more than a thousand."""


class ReadingContract(Suite):
    """Derive from it, name the class `Test…`, say how to make the store and what would show a write."""

    @abstractmethod
    async def footprint(self, store: Store) -> object:
        """Something that is another after anything was written into the database."""

    @over_the_store
    async def test_d8_reading_status_a_thousand_times_writes_nothing(self, world: World) -> None:
        questions = await _questions(world)
        for ask in questions:
            assert await ask(), "there is something to read"
        before = await self.footprint(world.store)
        for _ in range(ROUNDS):
            for ask in questions:
                await ask()
        assert ROUNDS * len(questions) >= 1_000
        assert await self.footprint(world.store) == before
        await world.store.beat([a_worker()], world.clock.now() + 1)
        assert await self.footprint(world.store) != before, "a write would have shown"


async def _questions(world: World) -> Sequence[Callable[[], Awaitable[object]]]:
    """All that a store can be asked for without a change, with something to find for each."""
    store, now = world.store, world.clock.now()
    run = await world.admit("s", source=Source.TASK)
    await world.record(world.start(run), Deliver(world.delivery(run)))
    await world.admit("t")
    keeper = Timekeeper(world)
    job = await keeper.add()
    await keeper.fire(job, due_at=1)
    await store.add_token(Token("t1", "laptop", "d" * 64, (Scope.READ,), 5))
    await store.keep_text("checklist", "look")
    await store.beat([a_worker(), a_worker("r-2.1", WorkerState.DEAD)], now)
    await store.keep_snapshot(SNAPSHOT)
    return (
        lambda: store.find(run.id),
        lambda: store.list(RunQuery()),
        lambda: store.list(RunQuery(agent="a", session="s", state=State.RUNNING)),
        lambda: store.list(RunQuery(source=Source.TASK, limit=1)),
        lambda: store.descendants(run.id, 10),
        lambda: _true(store.outcomes([run.id, RunId("nobody")])),
        lambda: _true(store.answers(["o-1"])),
        lambda: _true(store.memory_of(run.session)),
        lambda: _true(store.glimpse(run.session)),
        lambda: store.news({run.session: 0}, complete=True),
        store.nodes,
        lambda: _true(store.slots_wanted(run.lane)),
        lambda: store.letters(LetterQuery(dead=False)),
        store.count_letters,
        lambda: _true(store.last_route(run.agent)),
        lambda: store.find_job(job.id),
        lambda: store.find_job_named(job.agent, job.name),
        lambda: store.list_jobs(JobQuery()),
        lambda: store.due_jobs(now, 10, ()),
        lambda: _true(store.settled_jobs(10)),
        lambda: store.job_log(LogQuery()),
        lambda: store.text("checklist"),
        store.tokens,
        lambda: store.workers(WorkerQuery()),
        lambda: store.workers(WorkerQuery(state=WorkerState.DEAD, agent="a", host="one")),
        lambda: store.find_worker("r-1.1"),
        lambda: store.beats("r-1.1", 10),
        lambda: store.snapshots(SnapshotQuery(host="one")),
        store.machines,
        store.status,
    )


async def _true(asked: Awaitable[object]) -> bool:
    """Of questions whose answer may well be that there is nothing."""
    await asked
    return True
