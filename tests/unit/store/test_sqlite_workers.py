"""Workers and trees in the SQLite store, beyond the contract: indexes, older programs, newer words."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from headway import Settings
from headway.core.actions import Finish, Start
from headway.model.outcome import Outcome
from headway.model.run import RunId
from headway.model.words import State, WorkerState
from headway.ports import Granted, SnapshotQuery, WorkerQuery
from headway.store.sqlite import SqliteStore, database
from headway.store.sqlite.statements import MIGRATIONS, STATEMENTS
from headway.testing import VirtualClock
from tests.contract.workers_contract import SNAPSHOT, a_worker
from tests.contract.world import LEASE, a_run, ask

CLOCK = VirtualClock()
DEAD = WorkerState.DEAD
WITHOUT_WORKERS = tuple(step for step in MIGRATIONS if step.version < 5)


async def opened(path: Path, *, exclusive: bool = True) -> SqliteStore:
    store = SqliteStore(str(path), Settings(), CLOCK, exclusive=exclusive)
    await store.open()
    await store.enlist("one", LEASE)
    return store


async def steps_of(
    store: SqliteStore, table: str, ask_for: Callable[[], Awaitable[object]]
) -> list[str]:
    """How SQLite goes about the statement on this table with which a question is answered."""
    asked: list[str] = []
    await store._read(lambda db: db._connection.set_trace_callback(asked.append))
    await ask_for()
    await store._read(lambda db: db._connection.set_trace_callback(None))
    (text,) = [statement for statement in asked if f"FROM {table}" in statement]
    rows = await store._read(lambda db: db.plain(f"EXPLAIN QUERY PLAN {text}"))
    return [str(row[3]) for row in rows]


@pytest.mark.parametrize(
    ("query", "plan"),
    [
        (WorkerQuery(), "SCAN workers USING INDEX workers_living"),
        (WorkerQuery(agent="a", host="h"), "SCAN workers USING INDEX workers_living"),
        (WorkerQuery(state=WorkerState.BUSY), "SCAN workers USING INDEX workers_living"),
        (
            WorkerQuery(cursor='[5,"r"]'),
            "SEARCH workers USING INDEX workers_living ((started_at,id)<(?,?))",
        ),
        (WorkerQuery(state=DEAD), "SCAN workers USING INDEX workers_dead"),
        (
            WorkerQuery(state=DEAD, cursor='[5,"r"]'),
            "SEARCH workers USING INDEX workers_dead ((started_at,id)<(?,?))",
        ),
        (
            WorkerQuery(state=DEAD, agent="a"),
            "SEARCH workers USING INDEX workers_dead_of_agent (agent=?)",
        ),
        (
            WorkerQuery(state=DEAD, host="h"),
            "SEARCH workers USING INDEX workers_dead_of_host (host=?)",
        ),
    ],
)
def test_d8_a_page_of_workers_reads_no_table_whole(
    tmp_path: Path, query: WorkerQuery, plan: str
) -> None:
    async def main() -> None:
        store = await opened(tmp_path / "h.db")
        assert await steps_of(store, "workers", lambda: store.workers(query)) == [plan]
        await store.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("query", "plan"),
    [
        (SnapshotQuery(), "SCAN snapshots USING INDEX snapshots_at"),
        (
            SnapshotQuery(cursor="[5,1]"),
            "SEARCH snapshots USING INDEX snapshots_at ((at,node)<(?,?))",
        ),
        (SnapshotQuery(host="h"), "SEARCH snapshots USING PRIMARY KEY (host=?)"),
    ],
)
def test_d8_a_page_of_snapshots_reads_no_table_whole(
    tmp_path: Path, query: SnapshotQuery, plan: str
) -> None:
    async def main() -> None:
        store = await opened(tmp_path / "h.db")
        assert await steps_of(store, "snapshots", lambda: store.snapshots(query)) == [plan]
        await store.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("name", "plan"),
    [
        ("machines", "SEARCH snapshots USING PRIMARY KEY (host>?)"),
        ("machines", "SEARCH snapshots USING PRIMARY KEY (host=?)"),
        ("beats", "SEARCH beats USING PRIMARY KEY (worker=?)"),
        ("forget_beats", "INDEX beats_at (at<?)"),
        ("forget_beats", "INDEX beats_at (at=? AND worker=?)"),
        ("forget_dead_workers", "SEARCH workers USING INDEX workers_ended (at<?)"),
        ("forget_dead_workers", "SEARCH workers USING PRIMARY KEY (id=?)"),
        ("forget_lost_workers", "SCAN workers USING INDEX workers_living"),
        ("forget_snapshots", "INDEX snapshots_at (at<?)"),
        ("forget_snapshots", "INDEX snapshots_at (at=? AND node=? AND host=?)"),
        ("tree", "SEARCH kin USING PRIMARY KEY (ancestor=?)"),
        ("tree", "SEARCH runs USING INTEGER PRIMARY KEY (rowid=?)"),
        ("tree", "SEARCH queue USING INTEGER PRIMARY KEY (rowid=?)"),
    ],
)
def test_d8_every_statement_about_workers_uses_its_index(
    tmp_path: Path, name: str, plan: str
) -> None:
    async def main() -> None:
        store = await opened(tmp_path / "h.db")
        text = STATEMENTS[name].text
        values = [None] * (2 if "?1" in text else text.count("?"))
        rows = await store._read(lambda db: db.plain(f"EXPLAIN QUERY PLAN {text}", values))
        steps = [str(row[3]) for row in rows]
        assert any(plan in step for step in steps), steps
        tables = ("workers", "beats", "snapshots", "runs", "queue", "kin", "attempts")
        assert not [step for step in steps if step in {f"SCAN {table}" for table in tables}]
        await store.close()

    asyncio.run(main())


def test_d10_workers_of_a_newer_version_are_left_out(tmp_path: Path) -> None:
    """A page without them goes on where it would have."""

    async def main() -> None:
        path = tmp_path / "h.db"
        store = await opened(path)
        await store.beat([a_worker(f"r-{number}.1", started_at=number) for number in range(4)], 9)
        with sqlite3.connect(path, isolation_level=None) as other:
            other.execute(
                "UPDATE workers SET body = replace(body, '\"command\"', '\"dream\"')"
                " WHERE id IN ('r-2.1', 'r-3.1')"
            )
            other.execute(
                "UPDATE beats SET body = '{\"state\":\"dreaming\"}' WHERE worker = 'r-1.1'"
            )
        other.close()
        first = await store.workers(WorkerQuery(limit=2))
        assert first.workers == ()
        second = await store.workers(WorkerQuery(limit=2, cursor=first.cursor))
        assert [worker.id for worker in second.workers] == ["r-1.1", "r-0.1"]
        assert await store.find_worker("r-2.1") is None
        assert list(await store.beats("r-1.1", 5)) == []
        await store.close()

    asyncio.run(main())


def test_d10_an_older_program_goes_on_and_its_sub_runs_are_in_the_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it had unfinished before the newer one came, and what it begins after."""

    async def main() -> None:
        path = tmp_path / "h.db"
        monkeypatch.setattr(database, "MIGRATIONS", WITHOUT_WORKERS)
        older = await opened(path, exclusive=False)
        monkeypatch.undo()
        top = a_run("top", "s", CLOCK, {})
        granted = await ask(older, top)
        assert isinstance(granted, Granted)
        await older.record([Start(top, 1, 1, granted.epoch, 0)])
        below = {"parent": top.id, "ancestors": (top.id,), "root": top.session}
        before = a_run("before", "s-1", CLOCK, below)
        await ask(older, before)
        newer = await opened(path, exclusive=False)
        after = a_run("after", "s-2", CLOCK, below)
        taken = await ask(older, after)
        assert isinstance(taken, Granted)
        ids = [view.id for view in await newer.descendants(top.id, 9)]
        assert ids == ["top", "before", "after"]
        done = Outcome(State.DONE)
        await older.record([Start(after, 2, 1, taken.epoch, 0)])
        await older.record([Finish(after, done, 1, taken.epoch, 0)])
        assert [view.id for view in await newer.descendants(top.id, 9)] == ids
        # An older program forgets a run by this statement alone.
        await older._write(lambda db: db.plain("DELETE FROM runs WHERE id = 'after'"))
        assert [view.id for view in await newer.descendants(top.id, 9)] == ids[:2]
        left = await newer._read(lambda db: db.plain("SELECT count(*) FROM kin"))
        assert left == [(1,)], "and leaves nothing behind"
        await older.close()
        await newer.close()

    asyncio.run(main())


def test_x3_the_session_of_a_root_is_no_run(tmp_path: Path) -> None:
    """Sub-runs are known under the name of that session too, and that is in no tree."""

    async def main() -> None:
        store = await opened(tmp_path / "h.db")
        top = a_run("top", "s", CLOCK, {})
        granted = await ask(store, top)
        assert isinstance(granted, Granted)
        await store.record([Start(top, 1, 1, granted.epoch, 0)])
        await ask(store, a_run("sub", "t", CLOCK, {"ancestors": (top.id,), "root": top.session}))
        rows = await store._read(lambda db: db.plain("SELECT ancestor FROM kin"))
        assert rows == [("top",)]
        assert list(await store.descendants(RunId("s"), 9)) == []
        await store.close()

    asyncio.run(main())


def test_d8_a_beat_of_many_is_one_transaction(tmp_path: Path) -> None:
    async def main() -> None:
        store = await opened(tmp_path / "h.db")
        commits: list[str] = []
        await store._write(lambda db: db._connection.set_trace_callback(commits.append))
        commits.clear()
        await store.beat([a_worker(f"r-{number}.1") for number in range(500)], 9)
        assert commits.count("COMMIT") == 1
        await store.keep_snapshot(SNAPSHOT)
        assert commits.count("COMMIT") == 2
        await store.close()

    asyncio.run(main())
