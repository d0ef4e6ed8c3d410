"""What every store must do about workers and machines (`ports.Muster`, D-8), and about trees of runs."""

import asyncio
from dataclasses import dataclass

import msgspec
import pytest

from headway import Settings
from headway.model.errors import InvalidInput
from headway.model.run import AgentName, LaneName, Run, RunId, SessionKey
from headway.model.time import DAY, MINUTE, Instant
from headway.model.words import State, WorkerKind, WorkerState
from headway.model.worker import Beat, LaneLoad, Snapshot, Worker
from headway.ports import SnapshotQuery, WorkerQuery
from tests.contract.world import ODD, STOPPED, Suite, World, over_the_store

ALIVE, IDLE, BUSY, DEAD = WorkerState
SNAPSHOT = Snapshot("one", 1, MINUTE, 12.5, 8, 3 << 30, 16 << 30, 0.75, 2)
"""As `Suite.settings` say nothing else, beats are kept for 7 days and snapshots for 30."""


def a_worker(name: str = "r-1.1", state: WorkerState = ALIVE, **fields: object) -> Worker:
    """A worker as the watch sees it; `fields` says what is special about it."""
    run, _, attempt = name.rpartition(".")
    said: dict[str, object] = {
        "id": name,
        "run_id": RunId(run),
        "attempt": int(attempt),
        "agent": AgentName("a"),
        "session": SessionKey("s"),
        "kind": WorkerKind.COMMAND,
        "host": "one",
        "node": 1,
        "pid": 4711,
        "born": 1_700_000_000.25,
        "started_at": 5,
        "state": state,
        "beat_at": 7,
        **fields,
    }
    return Worker(**said)  # type: ignore[arg-type]


@dataclass
class Watch:
    """Short ways to tell a store what was seen, and to ask it."""

    world: World

    async def sees(self, at: Instant, *workers: Worker) -> None:
        await self.world.store.beat(workers, at)

    async def ids(self, **query: object) -> list[str]:
        page = await self.world.store.workers(WorkerQuery(**query))  # type: ignore[arg-type]
        return [worker.id for worker in page.workers]

    async def states(self, name: str = "r-1.1") -> list[tuple[Instant, WorkerState]]:
        return [(beat.at, beat.state) for beat in await self.world.store.beats(name, 100)]

    async def takes(self, *snapshots: Snapshot) -> None:
        for snapshot in snapshots:
            await self.world.store.keep_snapshot(snapshot)

    async def moments(self, **query: object) -> list[tuple[Instant, int]]:
        page = await self.world.store.snapshots(SnapshotQuery(**query))  # type: ignore[arg-type]
        return [(snapshot.at, snapshot.node) for snapshot in page.snapshots]


def _shot(at: Instant, host: str = "one", node: int = 1) -> Snapshot:
    return msgspec.structs.replace(SNAPSHOT, at=at, host=host, node=node)


class WorkersContract(Suite):
    """Derive from it, name the class `Test…`, and say how to make the store."""

    settings = Settings()

    # Workers and their beats.

    @over_the_store
    async def test_d8_a_worker_is_kept_as_it_was_seen(self, world: World) -> None:
        store = world.store
        plain = a_worker()
        strange = a_worker(
            "r-2.3",
            IDLE,
            agent=AgentName('says "hi" \\'),
            session=SessionKey(ODD),
            kind=WorkerKind.TMUX,
            host="höst",
            lines=(ODD, "", "half a pair \ud800"),
            pane="hw-r-2-3",
            missed=2,
            adopted=True,
            exit_code=-9,
            started_at=6,
        )
        await store.beat([plain, strange], 10)
        assert await store.find_worker("r-1.1") == plain
        assert await store.find_worker("r-2.3") == strange
        assert await store.find_worker("r-3.1") is None
        assert await store.find_worker(ODD) is None
        assert (await store.workers(WorkerQuery())).workers == (strange, plain)
        assert list(await store.beats("r-2.3", 5)) == [Beat("r-2.3", 10, IDLE, strange.lines)]
        assert list(await store.beats(ODD, 5)) == []

    @over_the_store
    async def test_d8_the_latest_beats_come_first(self, world: World) -> None:
        watch = Watch(world)
        for at, state in ((10, ALIVE), (20, BUSY), (30, IDLE)):
            await watch.sees(at, a_worker(state=state))
        assert await watch.states() == [(30, IDLE), (20, BUSY), (10, ALIVE)]
        found = await world.store.beats("r-1.1", 2)
        assert [beat.at for beat in found] == [30, 20]
        assert list(await world.store.beats("r-1.1", 0)) == []

    @over_the_store
    async def test_d8_a_missed_beat_is_a_beat_too(self, world: World) -> None:
        """It stands at the look, while the last sign of life stays where it was."""
        watch = Watch(world)
        await watch.sees(10, a_worker(state=BUSY, beat_at=10))
        missing = a_worker(state=BUSY, beat_at=10, missed=1)
        await watch.sees(20, missing)
        assert await world.store.find_worker("r-1.1") == missing
        assert await watch.states() == [(20, BUSY), (10, BUSY)]

    @over_the_store
    async def test_n15_what_is_told_again_changes_nothing(self, world: World) -> None:
        """Its answer may have been lost: also after more was told."""
        watch = Watch(world)
        first, second = a_worker(lines=("one",)), a_worker(state=BUSY, lines=("two",))
        for at, worker in ((10, first), (10, first), (20, second), (10, first), (20, second)):
            await watch.sees(at, worker)
        assert await world.store.find_worker("r-1.1") == second
        assert await watch.states() == [(20, BUSY), (10, ALIVE)]

    @over_the_store
    async def test_d8_an_older_beat_never_replaces_a_newer_one(self, world: World) -> None:
        watch = Watch(world)
        newer = a_worker(state=BUSY, node=2, adopted=True)
        await watch.sees(20, newer)
        await watch.sees(19, a_worker(state=IDLE, node=1))
        await watch.sees(19, a_worker(state=DEAD, node=1))
        assert await world.store.find_worker("r-1.1") == newer, "it was adopted since"
        assert await watch.states() == [(20, BUSY)]

    @over_the_store
    async def test_d8_the_dead_do_not_live_again(self, world: World) -> None:
        watch = Watch(world)
        dead = a_worker(state=DEAD, exit_code=3)
        await watch.sees(10, a_worker())
        await watch.sees(20, dead)
        await watch.sees(30, a_worker(state=BUSY))
        await watch.sees(40, a_worker(state=DEAD, exit_code=0))
        assert await world.store.find_worker("r-1.1") == dead
        assert await watch.states() == [(20, DEAD), (10, ALIVE)]
        assert await watch.ids() == []
        assert await watch.ids(state=DEAD) == ["r-1.1"]

    @over_the_store
    async def test_w2_another_process_under_the_same_number_is_another_worker(
        self, world: World
    ) -> None:
        """An attempt that does not count, because it gave way, is begun again under its number."""
        watch = Watch(world)
        first, second = a_worker(state=DEAD, pid=7), a_worker(state=BUSY, pid=8)
        await watch.sees(10, first)
        await watch.sees(20, second)
        for late in (first, a_worker(state=BUSY, pid=7), a_worker(state=DEAD, born=1.5)):
            await watch.sees(19, late)
        assert await world.store.find_worker("r-1.1") == second
        assert await watch.ids() == ["r-1.1"]
        assert await watch.ids(state=DEAD) == []
        assert await watch.states() == [(20, BUSY), (10, DEAD)]
        reused = a_worker(state=IDLE, pid=8, born=2.5)
        await watch.sees(30, a_worker(state=DEAD, pid=8))
        await watch.sees(40, reused)
        assert await world.store.find_worker("r-1.1") == reused, "a pid may be another process"

    @over_the_store
    async def test_d8_a_death_counts_though_the_clock_went_back(self, world: World) -> None:
        watch = Watch(world)
        await watch.sees(20, a_worker(state=BUSY))
        await watch.sees(19, a_worker(state=DEAD))
        assert await watch.ids() == []
        assert await watch.states() == [(20, DEAD)]

    @over_the_store
    async def test_d8_one_call_tells_of_each_worker_once(self, world: World) -> None:
        watch = Watch(world)
        await watch.sees(10, a_worker(), a_worker("r-2.1"), a_worker(state=BUSY))
        await watch.sees(20)
        assert await watch.ids() == ["r-2.1", "r-1.1"]
        assert await watch.states() == [(10, BUSY)]

    @over_the_store
    async def test_d8_nodes_that_tell_at_once_do_not_hinder_each_other(self, world: World) -> None:
        workers = [a_worker(f"r-{number}.1") for number in range(20)]
        told = [workers, workers[::-1]] * 4
        await asyncio.gather(*(world.store.beat(some, 10 + at) for at, some in enumerate(told)))
        assert len(await Watch(world).ids()) == 20

    # Lists of them.

    @over_the_store
    async def test_d8_workers_are_listed_as_asked_the_latest_first(self, world: World) -> None:
        watch = Watch(world)
        await watch.sees(
            10,
            a_worker("r-1.1", BUSY, started_at=1),
            a_worker("r-2.1", IDLE, started_at=2, agent=AgentName("b")),
            a_worker("r-3.1", DEAD, started_at=3, host="two"),
            a_worker("r-4.1", BUSY, started_at=4, host="two"),
            a_worker("r-5.1", DEAD, started_at=5, agent=AgentName("b")),
        )
        assert await watch.ids() == ["r-4.1", "r-2.1", "r-1.1"]
        assert await watch.ids(state=BUSY) == ["r-4.1", "r-1.1"]
        assert await watch.ids(state=BUSY, host="one") == ["r-1.1"]
        assert await watch.ids(state=ALIVE) == []
        assert await watch.ids(agent="b") == ["r-2.1"]
        assert await watch.ids(state=DEAD) == ["r-5.1", "r-3.1"]
        assert await watch.ids(state=DEAD, agent="b") == ["r-5.1"]
        assert await watch.ids(state=DEAD, host="two") == ["r-3.1"]
        assert await watch.ids(state=DEAD, agent="b", host="two") == []
        assert await watch.ids(agent=ODD) == []

    @over_the_store
    async def test_d8_pages_of_workers_have_each_of_them_once(self, world: World) -> None:
        watch = Watch(world)
        # Many of one instant, so that only the id tells them apart.
        for state in (BUSY, DEAD):
            names = [f"r-{number:02}.{1 + (state is DEAD)}" for number in range(7)]
            await watch.sees(
                10, *(a_worker(name, state, started_at=at // 4) for at, name in enumerate(names))
            )
            seen: list[str] = []
            cursor: str | None = None
            for page_number in range(4):
                query = WorkerQuery(state=state, limit=2, cursor=cursor)
                page = await world.store.workers(query)
                seen += [worker.id for worker in page.workers]
                cursor = page.cursor
                assert (cursor is None) == (page_number == 3)
                # What dies or comes between two pages moves no other.
                await watch.sees(20, a_worker("r-99.9", started_at=9))
            assert seen == names[::-1]

    @pytest.mark.parametrize("cursor", ["", "5", "[]", '[1,2,"x"]', '["a","b"]', f"[{10**30},1]"])
    def test_d8_a_cursor_that_is_none_is_refused(self, cursor: str) -> None:
        @over_the_store
        async def test(self: WorkersContract, world: World) -> None:
            with pytest.raises(InvalidInput, match="cursor"):
                await world.store.workers(WorkerQuery(cursor=cursor))
            with pytest.raises(InvalidInput, match="cursor"):
                await world.store.snapshots(SnapshotQuery(cursor=cursor))

        test(self)

    # Machines.

    @over_the_store
    async def test_d8_a_snapshot_is_kept_as_it_was_taken(self, world: World) -> None:
        lanes = (LaneLoad(LaneName("main"), 4, 3, 17), LaneLoad(LaneName('"odd" \\'), 0, 0, 0))
        full = msgspec.structs.replace(SNAPSHOT, host="höst", at=2 * MINUTE, lanes=lanes)
        await Watch(world).takes(SNAPSHOT, full)
        page = await world.store.snapshots(SnapshotQuery())
        assert (page.snapshots, page.cursor) == ((full, SNAPSHOT), None)

    @over_the_store
    async def test_n15_a_snapshot_that_comes_again_is_one(self, world: World) -> None:
        watch = Watch(world)
        await watch.takes(_shot(5), _shot(5), _shot(5, node=2), _shot(5))
        assert await watch.moments() == [(5, 2), (5, 1)]

    @over_the_store
    async def test_d8_pages_of_snapshots_have_each_of_them_once(self, world: World) -> None:
        watch = Watch(world)
        shots = [
            _shot(at, "two" if node == 3 else "one", node) for at in (5, 6) for node in (1, 2, 3)
        ]
        await watch.takes(*shots)
        for host, expected in (
            (None, [(6, 3), (6, 2), (6, 1), (5, 3), (5, 2), (5, 1)]),
            ("one", [(6, 2), (6, 1), (5, 2), (5, 1)]),
            ("two", [(6, 3), (5, 3)]),
            ("three", []),
            (ODD, []),
        ):
            seen: list[tuple[Instant, int]] = []
            query = SnapshotQuery(host=host, limit=2)
            while True:
                page = await world.store.snapshots(query)
                seen += [(snapshot.at, snapshot.node) for snapshot in page.snapshots]
                if page.cursor is None:
                    break
                query = SnapshotQuery(host=host, limit=2, cursor=page.cursor)
            assert seen == expected

    @over_the_store
    async def test_d8_of_each_machine_the_latest_snapshot_is_known(self, world: World) -> None:
        store = world.store
        assert list(await store.machines()) == []
        await Watch(world).takes(
            _shot(7, "two", 3), _shot(9), _shot(5), _shot(9, "a", 4), _shot(8, "two", 3), _shot(9, node=2)
        )  # fmt: skip
        assert [(one.host, one.at, one.node) for one in await store.machines()] == [
            ("a", 9, 4),
            ("one", 9, 2),
            ("two", 8, 3),
        ]

    # Forgetting.

    @over_the_store
    async def test_d8_beats_go_after_7_days_and_snapshots_after_30(self, world: World) -> None:
        watch, clock = Watch(world), world.clock
        begun = clock.now()
        await watch.sees(begun, a_worker(), a_worker("r-2.1", DEAD), a_worker("r-3.1"))
        await watch.takes(_shot(begun))
        clock.advance(7 * DAY - 1)
        await watch.sees(clock.now(), a_worker(state=BUSY))
        await world.store.prune(100)
        assert len(await watch.states()) == 2
        assert await watch.ids(state=DEAD) == ["r-2.1"]
        clock.advance(1)
        await world.store.prune(100)
        assert await watch.states() == [(clock.now() - 1, BUSY)], "the older one is gone"
        assert await watch.ids(state=DEAD) == [], "with its last beat"
        assert await watch.ids() == ["r-1.1"], "what nobody has seen for so long is gone too"
        assert list(await world.store.beats("r-2.1", 5)) == []
        assert await watch.moments() == [(begun, 1)]
        clock.advance(23 * DAY - 1)
        await world.store.prune(100)
        assert await watch.moments() == [(begun, 1)]
        clock.advance(1)
        await world.store.prune(100)
        assert await watch.moments() == []
        assert list(await world.store.machines()) == []

    @over_the_store
    async def test_d8_retention_is_what_was_set(self, world: World) -> None:
        watch = Watch(world)
        world.settings = Settings(beat_retention=MINUTE, snapshot_retention=2 * MINUTE)
        await world.restart()
        store, now = world.store, world.clock.now()
        await watch.sees(now, a_worker())
        await watch.takes(_shot(now))
        world.clock.advance(MINUTE)
        await store.prune(100)
        assert (await watch.ids(), await watch.moments()) == ([], [(now, 1)])
        world.clock.advance(MINUTE)
        await store.prune(100)
        assert await watch.moments() == []

    # Trees.

    @over_the_store
    async def test_x3_a_tree_is_a_run_and_all_below_it(self, world: World) -> None:
        """Also what has ended, the oldest first, and nothing else."""
        top, child, grandchild, other = await _family(world)
        second = await _below(world, top, "s-4")
        for asked, expected in (
            (top, [top, child, grandchild, second]),
            (child, [child, grandchild]),
            (grandchild, [grandchild]),
            (other, [other]),
        ):
            views = await world.store.descendants(asked.id, 100)
            assert [view.run for view in views] == expected
        await world.carry_through(grandchild)
        await world.record(world.start(second), world.finish(second, STOPPED))
        views = await world.store.descendants(top.id, 100)
        assert [(view.id, view.state) for view in views] == [
            (top.id, State.RUNNING),
            (child.id, State.RUNNING),
            (grandchild.id, State.DONE),
            (second.id, State.CANCELLED),
        ]
        assert views[2] == await world.store.find(grandchild.id)
        await world.record(world.finish(child), world.finish(top))
        assert len(await world.store.descendants(top.id, 100)) == 4
        assert [view.id for view in await world.store.descendants(top.id, 2)] == [top.id, child.id]
        assert list(await world.store.descendants(RunId("nobody"), 100)) == []

    @over_the_store
    async def test_d8_what_is_forgotten_is_in_no_tree(self, world: World) -> None:
        top, child, grandchild, _ = await _family(world)
        await world.carry_through(grandchild)
        await world.record(world.finish(child))
        world.clock.advance(self.settings.retention)
        assert await world.store.prune(100) == 2
        assert [view.id for view in await world.store.descendants(top.id, 100)] == [top.id]
        assert list(await world.store.descendants(child.id, 100)) == []


async def _family(world: World) -> tuple[Run, Run, Run, Run]:
    """A run, one below it, one below that, all but the last running; and one beside them."""
    top = await world.admit("s-1")
    await world.record(world.start(top))
    child = await _below(world, top, "s-2")
    await world.record(world.start(child))
    other = await world.admit("s-1")
    grandchild = await _below(world, child, "s-3")
    return top, child, grandchild, other


async def _below(world: World, parent: Run, session: str) -> Run:
    return await world.admit(
        session,
        parent=parent.id,
        ancestors=(*parent.ancestors, parent.id),
        root=parent.root or parent.session,
    )


class DurableWorkersContract(WorkersContract):
    """Of stores that outlive their process."""

    @over_the_store
    async def test_d8_what_was_seen_outlives_the_process(self, world: World) -> None:
        watch = Watch(world)
        await watch.sees(10, a_worker(state=BUSY))
        await watch.takes(SNAPSHOT)
        top, child, *_ = await _family(world)
        await world.restart()
        assert await watch.ids() == ["r-1.1"]
        assert await watch.states() == [(10, BUSY)]
        assert list(await world.store.machines()) == [SNAPSHOT]
        views = await world.store.descendants(top.id, 2)
        assert [view.id for view in views] == [top.id, child.id]

    @over_the_store
    async def test_d8_much_is_forgotten_a_little_at_a_time(self, world: World) -> None:
        """So that nobody waits for it; who prunes is told that there is more."""
        watch = Watch(world)
        now = world.clock.now()
        for number in range(4):
            await watch.sees(now + number, *(a_worker(f"r-{at}.1") for at in range(2)))
            await watch.takes(_shot(now + number))
        world.clock.advance(31 * DAY)
        left = []
        for expected in (3, 3, 0):
            assert await world.store.prune(3) == expected
            beats = [await watch.states(f"r-{at}.1") for at in range(2)]
            left.append((sum(map(len, beats)), len(await watch.moments())))
        assert left == [(5, 1), (2, 0), (0, 0)]
