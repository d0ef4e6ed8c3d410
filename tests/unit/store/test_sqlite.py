"""The SQLite store's own promises: its file, its lock, its errors, its transactions."""

import asyncio
import os
import sqlite3
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path

import pytest

from headway import Outcome, Reply, Route, Settings, State
from headway.core.actions import Action, Deliver, Finish, Release, Start
from headway.core.retry import LONGEST_DELAY
from headway.model.errors import HeadwayError, StoreRefused, StoreUnavailable
from headway.model.places import Delivery, Order, StopAll
from headway.model.run import AgentName, LaneName, Run, RunId, SessionKey
from headway.model.settings import Limits
from headway.model.time import MINUTE, SECOND
from headway.model.words import Reason, Source
from headway.ports import Admission, Claims, Elsewhere, Granted, Hint, RunQuery, TurnedAway
from headway.store.sqlite import SqliteStore
from headway.store.sqlite.database import Database
from headway.store.sqlite.intake import Asked, admit
from headway.store.sqlite.node import Node
from headway.store.sqlite.statements import MIGRATIONS, STATEMENTS
from headway.testing import VirtualClock

MAIN = LaneName("main")
A = AgentName("a")
DONE = Outcome(State.DONE, reply=Reply("ok"))
CLOCK = VirtualClock()
LEASE = 30 * SECOND


def a_run(number: object = 1, session: str = "s", **fields: object) -> Run:
    said: dict[str, object] = {"source": Source.MESSAGE, "priority": 0, "lane": MAIN, **fields}
    return Run(
        RunId(f"r-{number}"),
        A,
        SessionKey(session),
        submitted_at=CLOCK.now(),
        **said,  # type: ignore[arg-type]
    )


def store_at(
    path: Path, settings: Settings | None = None, *, exclusive: bool = True
) -> SqliteStore:
    return SqliteStore(str(path), settings or Settings(), CLOCK, exclusive=exclusive)


async def opened(path: Path, settings: Settings | None = None) -> SqliteStore:
    """As a process that owns the file."""
    store = store_at(path, settings)
    await store.open()
    await store.enlist("one", LEASE)
    return store


async def granted(store: SqliteStore, run: Run) -> Granted:
    answer = await store.admit(run)
    assert isinstance(answer, Granted), answer
    return answer


def start(run: Run, granted: Granted, slot: int = 0) -> Start:
    return Start(run, 1, 1, granted.epoch, CLOCK.now(), slot)


def finish(run: Run, granted: Granted, outcome: Outcome = DONE) -> Finish:
    return Finish(run, outcome, 1, granted.epoch, CLOCK.now(), CLOCK.now())


def failure(attempt: Callable[[], Coroutine[object, object, object]]) -> HeadwayError:
    """The error that this ends with: ours, never the driver's."""
    with pytest.raises(HeadwayError) as raised:
        asyncio.run(attempt())
    return raised.value


# The file.


def test_d1_a_file_is_made_durable(tmp_path: Path) -> None:
    async def main() -> None:
        store = await opened(tmp_path / "h.db")
        assert store.durable
        await store.close()

    asyncio.run(main())
    with sqlite3.connect(tmp_path / "h.db") as database:
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    error = failure(lambda: opened(tmp_path / "no" / "h.db"))
    assert isinstance(error, StoreRefused)
    assert "folder" in error.advice


def test_what_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "h.db"
    path.write_text("this is a letter, not a database\n" * 100, encoding="utf-8")
    before = path.read_bytes()
    error = failure(lambda: opened(path))
    assert isinstance(error, StoreRefused)
    assert "not a SQLite database" in error.reason
    assert path.read_bytes() == before


def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    assert isinstance(failure(lambda: opened(tmp_path)), StoreRefused)


def test_d10_a_database_that_needs_a_newer_program_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "h.db"

    async def make() -> None:
        await (await opened(path)).close()

    asyncio.run(make())
    with sqlite3.connect(path) as database:
        database.execute("UPDATE meta SET value = 99 WHERE name = 'minimum'")
    error = failure(lambda: opened(path))
    assert isinstance(error, StoreRefused)
    assert "99" in error.reason


def test_d10_a_database_of_a_later_version_that_allows_this_program_is_used(tmp_path: Path) -> None:
    path = tmp_path / "h.db"

    async def make() -> None:
        await (await opened(path)).close()

    asyncio.run(make())
    with sqlite3.connect(path) as database:
        database.execute("UPDATE meta SET value = 99 WHERE name = 'version'")
        database.execute("ALTER TABLE runs ADD COLUMN invented_later TEXT")

    async def use() -> None:
        store = await opened(path)
        run = a_run()
        await granted(store, run)
        assert (await store.find(run.id)) is not None
        await store.close()

    asyncio.run(use())


def test_d10_migrating_needs_no_open_and_happens_once(tmp_path: Path) -> None:
    async def main() -> None:
        store = store_at(tmp_path / "h.db")
        assert list(await store.migrate()) == [migration.name for migration in MIGRATIONS]
        assert list(await store.migrate()) == []

    asyncio.run(main())


def test_d10_two_processes_that_migrate_at_once_do_it_once(tmp_path: Path) -> None:
    async def main() -> None:
        stores = [store_at(tmp_path / "h.db", exclusive=False) for _ in range(4)]
        done = await asyncio.gather(*(store.migrate() for store in stores))
        assert sorted(map(len, done)) == [0, 0, 0, len(MIGRATIONS)]

    asyncio.run(main())


def test_d8_status_makes_nothing_and_counts_by_state(tmp_path: Path) -> None:
    path = tmp_path / "h.db"
    error = failure(lambda: store_at(path).status())
    assert isinstance(error, StoreRefused)
    assert list(tmp_path.iterdir()) == []

    async def main() -> None:
        store = await opened(path)
        runs = [a_run(number, f"s{number}") for number in range(3)]
        grants = [await granted(store, run) for run in runs]
        await store.record([start(runs[0], grants[0]), start(runs[1], grants[1])])
        await store.record([finish(runs[0], grants[0])])
        found = await store_at(path).status()
        assert found.runs == {State.DONE: 1, State.RUNNING: 1, State.QUEUED: 1}
        assert (found.version, found.pending) == (found.newest, ())
        assert found.size > 0
        await store.close()

    asyncio.run(main())


# One owner (N-21).


def test_n21_a_second_owner_is_refused_and_told_who_has_it(tmp_path: Path) -> None:
    async def main() -> None:
        first = await opened(tmp_path / "h.db")
        second = store_at(tmp_path / "h.db")
        await second.open()
        with pytest.raises(StoreRefused, match=str(os.getpid())) as refused:
            await second.enlist("two", LEASE)
        assert "PostgreSQL" in refused.value.advice
        await first.close()
        assert await second.enlist("two", LEASE) > 0
        await second.close()

    asyncio.run(main())


def test_d7_what_a_killed_process_was_delivering_is_due_at_once(tmp_path: Path) -> None:
    async def main() -> None:
        path = tmp_path / "h.db"
        killed = await opened(path)
        run = a_run("1", "s")
        epoch = (await granted(killed, run)).epoch
        letters = [
            Delivery(name, Route("chat"), "hello", run.id, run.session, epoch)
            for name in ("d-1", "failed", "put off")
        ]
        await killed.record([Deliver(letter) for letter in letters])

        async def taken(store: SqliteStore) -> list[str]:
            now = CLOCK.now()
            due = await store.take_deliveries(["chat"], 10, now, now + MINUTE)
            return [delivery.id for delivery in due]

        assert await taken(killed) == ["d-1", "failed", "put off"]
        await killed.settle_delivery(letters[1], CLOCK.now() + LONGEST_DELAY, "offline")
        await killed.settle_delivery(letters[2], CLOCK.now() + MINUTE + 1, "its turn comes later")
        await killed.enlist("one", LEASE)
        assert await taken(killed) == [], "this process is on the way with it"
        await killed.close()
        successor = await opened(path)
        assert await taken(successor) == ["d-1"], "a restart is no reason to try the others sooner"
        await successor.close()

    asyncio.run(main())


def test_n21_who_is_no_owner_adds_and_reads_and_wakes_the_owner(tmp_path: Path) -> None:
    async def main() -> None:
        path = tmp_path / "h.db"
        heard: asyncio.Queue[Hint] = asyncio.Queue()
        owner = store_at(path)
        await owner.open(heard.put_nowait)
        await owner.enlist("one", LEASE)
        mine = a_run("mine", "mine")
        epoch = (await granted(owner, mine)).epoch
        other = store_at(path)
        await other.open()

        async def poked() -> None:
            async with asyncio.timeout(60):
                while await heard.get() is not Hint.ALL:
                    pass

        assert await other.admit(a_run("new", "new")) == Elsewhere(1, owned=False)
        await poked()
        assert await other.admit(a_run("more", "mine")) == Elsewhere(2, owned=True)
        await poked()
        assert await other.claim({MAIN: 9}, [A], CLOCK.now()) == Claims()
        order = Order("o", SessionKey("mine"), StopAll())
        assert await other.order(order) == Elsewhere(3, owned=True)
        view = await other.find(mine.id)
        assert view is not None

        (news,) = await owner.news({mine.session: 1})
        assert [place.run.id for place in news.places] == ["r-more"]
        assert [given.id for given in news.orders] == ["o"]
        assert news.epoch == epoch
        (holding,) = (await owner.claim({MAIN: 9}, [A], CLOCK.now())).holdings
        assert [place.run.id for place in holding.places] == ["r-new"]
        await other.close()
        await owner.close()

    asyncio.run(main())


def test_n21_an_order_from_outside_to_an_idle_session_reaches_the_owner(tmp_path: Path) -> None:
    async def main() -> None:
        owner = await opened(tmp_path / "h.db")
        other = store_at(tmp_path / "h.db")
        await other.open()
        order = Order("o", SessionKey("idle"), StopAll())
        assert await other.order(order) == Elsewhere(1, owned=False)
        (holding,) = (await owner.claim({}, [A], CLOCK.now())).holdings
        assert [given.id for given in holding.orders] == ["o"]
        await other.close()
        await owner.close()

    asyncio.run(main())


def test_nobody_there_to_be_woken_is_no_error(tmp_path: Path) -> None:
    async def main() -> None:
        store = store_at(tmp_path / "h.db")
        await store.open()
        assert isinstance(await store.admit(a_run()), Elsewhere)
        await store.close()

    asyncio.run(main())


def test_a_path_too_long_for_a_socket_works_without_one(tmp_path: Path) -> None:
    async def main() -> None:
        folder = tmp_path / ("x" * 100)
        folder.mkdir()
        store = await opened(folder / "h.db")
        await granted(store, a_run())
        other = store_at(folder / "h.db")
        await other.open()
        assert isinstance(await other.admit(a_run(2)), Elsewhere)
        await other.close()
        await store.close()

    asyncio.run(main())


_KILLED = """
    import asyncio, os, signal, sys
    from headway import Settings
    from headway.core.actions import Start
    from headway.runtime.clock import SystemClock
    from headway.store.sqlite import SqliteStore
    from tests.unit.store.test_sqlite import a_run

    async def main():
        store = SqliteStore(sys.argv[1], Settings(), SystemClock())
        await store.open()
        await store.enlist("killed", 30_000_000)
        for number in range(20):
            run = a_run(number, f"s{number}")
            granted = await store.admit(run)
            if number < 5:
                await store.record([Start(run, 1, 1, granted.epoch, 1, 0)])
            print(run.id, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

    asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_d7_after_a_kill_the_next_owner_finds_everything_at_once(tmp_path: Path) -> None:
    path = tmp_path / "h.db"
    killed = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(_KILLED), str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=Path(__file__).parents[3],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    acknowledged = killed.stdout.split()
    assert len(acknowledged) == 20, killed.stderr

    async def main() -> None:
        store = await opened(path)
        claims = await store.claim({MAIN: 99}, [A], CLOCK.now() + 10**18)
        places = [place for holding in claims.holdings for place in holding.places]
        assert sorted(place.run.id for place in places) == sorted(acknowledged)
        assert sum(place.orphaned for place in places) == 5
        ended = [node.ended for node in await store.nodes()]
        assert ended == ["dead", ""]
        await store.close()

    asyncio.run(main())


# Errors at work.


def test_a_full_disk_is_unavailable_and_passes(tmp_path: Path) -> None:
    async def main() -> None:
        store = await opened(tmp_path / "h.db")
        await granted(store, a_run("before"))
        ((pages,),) = await store._read(lambda db: db.plain("PRAGMA page_count"))
        assert isinstance(pages, int)
        await store._write(lambda db: db.plain(f"PRAGMA max_page_count = {pages}"))
        big = "x" * 100_000
        answers = [store.admit(a_run(number, text=big)) for number in range(20)]
        with pytest.raises(StoreUnavailable, match="full"):
            await answers[0]
        failed = await asyncio.gather(*answers, return_exceptions=True)
        assert {type(answer) for answer in failed} == {StoreUnavailable}
        view = await store.find(RunId("r-before"))
        assert view is not None
        await store._write(lambda db: db.plain("PRAGMA max_page_count = 1000000"))
        assert isinstance(await store.admit(a_run("after", text=big)), Granted)
        await store.close()

    asyncio.run(main())


def test_a_file_that_cannot_be_written_is_unavailable(tmp_path: Path) -> None:
    path = tmp_path / "h.db"

    async def main() -> None:
        run = a_run("before")
        writing = await opened(path)
        await granted(writing, run)
        store = SqliteStore(f"{path.as_uri()}?mode=ro", Settings(), CLOCK, exclusive=False)
        await store.open()
        with pytest.raises(StoreUnavailable, match="cannot be written"):
            await store.admit(a_run())
        assert await store.find(run.id) is not None, "reading goes on"
        await store.close()
        await writing.close()

    asyncio.run(main())


def test_a_file_that_another_process_keeps_locked_is_unavailable_soon(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        store = await opened(tmp_path / "h.db")
        run = a_run("before")
        await granted(store, run)
        with sqlite3.connect(tmp_path / "h.db", isolation_level=None) as other:
            other.execute("BEGIN IMMEDIATE")
            async with asyncio.timeout(20):
                with pytest.raises(StoreUnavailable, match="another process"):
                    await store.admit(a_run())
            assert await store.find(run.id) is not None, "readers do not wait for writers"
            other.execute("ROLLBACK")
        other.close()
        await granted(store, a_run("after", "t"))
        await store.close()

    asyncio.run(main())


def test_a_store_that_is_not_open_says_so(tmp_path: Path) -> None:
    async def main() -> None:
        store = store_at(tmp_path / "h.db")
        with pytest.raises(StoreUnavailable, match="not open"):
            await store.find(RunId("r"))
        await store.open()
        await store.close()
        with pytest.raises(StoreUnavailable, match="not open"):
            store.admit(a_run())

    asyncio.run(main())


def test_closing_leaves_no_thread_and_keeps_what_was_asked_before(tmp_path: Path) -> None:
    async def main() -> None:
        store = await opened(tmp_path / "h.db")
        asked = [store.admit(a_run(number)) for number in range(50)]
        await asyncio.sleep(0)
        await store.close()
        answers = await asyncio.gather(*asked)
        assert all(isinstance(answer, Granted) for answer in answers)

    before = threading.active_count()
    asyncio.run(main())
    assert threading.active_count() <= before + 1, "only the loop's own pool may be left"


# Transactions.


def test_n15_one_bad_run_does_not_fail_those_it_came_with(tmp_path: Path) -> None:
    async def main() -> None:
        store = await opened(tmp_path / "h.db")
        runs = [a_run(1, "one"), a_run(2, "half \ud83d"), a_run(3, "three")]
        answers: list[Admission | BaseException] = await asyncio.gather(
            *(store.admit(run) for run in runs), return_exceptions=True
        )
        assert [type(answer) for answer in answers] == [Granted, StoreRefused, Granted]
        await store.close()

    asyncio.run(main())


def test_n15_one_bad_action_does_not_fail_those_it_came_with(tmp_path: Path) -> None:
    async def main() -> None:
        store = await opened(tmp_path / "h.db")
        runs = [a_run(number, f"s{number}") for number in range(3)]
        grants = [await granted(store, run) for run in runs]
        await store.record([start(*pair) for pair in zip(runs, grants, strict=True)])
        bad = Outcome(State.CANCELLED, Reason.MERGED, into="half \ud83d")
        actions: list[Action] = [
            finish(runs[0], grants[0]),
            finish(runs[1], grants[1], bad),
            finish(runs[2], grants[2]),
        ]
        recorded = await store.record(actions)
        assert recorded.lost == ((runs[1].session, grants[1].epoch),)
        ended = await store.outcomes([run.id for run in runs])
        assert [ended[run.id].state for run in runs] == [State.DONE, State.FAILED, State.DONE]
        await store.close()

    asyncio.run(main())


def test_n11_a_second_attempt_in_a_slot_fails_one_run_loudly(tmp_path: Path) -> None:
    async def main() -> None:
        store = await opened(tmp_path / "h.db")
        runs = [a_run(1, "s"), a_run(2, "s"), a_run(3, "t")]
        grants = [await granted(store, run) for run in runs]
        await store.record([start(runs[0], grants[0])])
        recorded = await store.record([start(runs[1], grants[1]), start(runs[2], grants[2])])
        assert recorded.lost == ((SessionKey("s"), grants[0].epoch),)
        views = [await store.find(run.id) for run in runs]
        states = [view.state for view in views if view is not None]
        assert states == [State.RUNNING, State.FAILED, State.RUNNING]
        kept = await store._read(lambda db: db.plain("SELECT kind FROM events"))
        assert kept == [("slot_conflict",)]
        await store.close()

    asyncio.run(main())


def test_what_comes_together_is_one_transaction(tmp_path: Path) -> None:
    async def main() -> None:
        store = await opened(tmp_path / "h.db")
        commits = 0

        def count(statement: str) -> None:
            nonlocal commits
            commits += statement == "COMMIT"

        await store._write(lambda db: db._connection.set_trace_callback(count))
        commits = 0
        answers = await asyncio.gather(*(store.admit(a_run(n, f"s{n}")) for n in range(500)))
        assert len({answer.epoch for answer in answers if isinstance(answer, Granted)}) == 500
        assert commits <= 4
        await store.close()

    asyncio.run(main())


def test_what_comes_until_the_writer_begins_goes_with_what_waits(tmp_path: Path) -> None:
    async def main() -> None:
        store = await opened(tmp_path / "headway.db")
        free, busy = threading.Event(), threading.Event()
        batches: list[int] = []

        def hold(_: Database) -> None:
            busy.set()
            free.wait()

        def count(
            database: Database, node: Node, batch: Sequence[Asked], now: int
        ) -> list[Admission]:
            batches.append(len(batch))
            return admit(database, node, batch, now)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("headway.store.sqlite.intake.admit", count)
            held = asyncio.create_task(store._write(hold))
            await asyncio.to_thread(busy.wait)
            answers = []
            for number in range(3):
                answers.append(asyncio.ensure_future(store.admit(a_run(number))))
                # A turn of the loop each.
                await asyncio.sleep(0)
            free.set()
            await held
            told = await asyncio.gather(*answers)
        assert [answer.seq for answer in told if isinstance(answer, Granted)] == [1, 2, 3]
        assert batches == [3]
        await store.close()

    asyncio.run(main())


def test_f1_the_count_of_waiting_tasks_stays_exact_at_the_limit(tmp_path: Path) -> None:
    async def main() -> None:
        settings = Settings(limits=Limits(max_queue=5, max_queue_per_agent=3))
        store = await opened(tmp_path / "h.db", settings)
        for turn in range(4):
            runs = [a_run(f"{turn}-{n}", f"{turn}-{n}", source=Source.TASK) for n in range(5)]
            answers = [await store.admit(run) for run in runs]
            taken = [
                (run, answer)
                for run, answer in zip(runs, answers, strict=True)
                if isinstance(answer, Granted)
            ]
            assert len(taken) == 3
            await store.record([start(run, grant) for run, grant in taken])
            await store.record(
                [
                    action
                    for run, grant in taken
                    for action in (
                        finish(run, grant),
                        Release(run.session, grant.epoch, grant.seq),
                    )
                ]
            )
        rejected = await store.list(RunQuery(state=State.REJECTED))
        assert len(rejected.runs) == 8
        await store.close()

    asyncio.run(main())


def test_n20_a_session_that_this_version_cannot_read_is_left_to_others(tmp_path: Path) -> None:
    path = tmp_path / "h.db"

    async def main() -> None:
        store = store_at(path)
        await store.open()
        for name in ("plain", "strange"):
            await store.admit(a_run(name, name))
        with sqlite3.connect(path, isolation_level=None) as other:
            other.execute(
                "UPDATE runs SET body = replace(body, '\"message\"', '\"dream\"')"
                " WHERE id = 'r-strange'"
            )
        other.close()
        await store.enlist("one", LEASE)
        for _ in range(2):
            claims = await store.claim({MAIN: 9}, [A], CLOCK.now())
            found = [holding.session for holding in claims.holdings]
            await store.record([Release(h.session, h.epoch, h.seen) for h in claims.holdings])
            assert found == ["plain"]
        await store.close()

    asyncio.run(main())


# SQL.


def test_every_statement_is_right_and_says_which_index_it_uses(tmp_path: Path) -> None:
    async def main() -> None:
        store = await opened(tmp_path / "h.db")
        for name, statement in STATEMENTS.items():
            text, _ = statement.sized(2)
            values = [None] * max(text.count("?"), 0)
            await store._read(lambda db, t=text, v=values: db.plain(f"EXPLAIN {t}", _fit(t, v)))  # type: ignore[misc]
            assert name.isidentifier()
        await store.close()

    asyncio.run(main())


def _fit(text: str, values: list[None]) -> list[None]:
    """As many values as the statement has: numbered ones count once."""
    numbered = {part[0] for part in text.split("?")[1:] if part[:1].isdigit()}
    return values[: len(numbered)] if numbered else values


@pytest.mark.parametrize(
    ("name", "plan"),
    [
        ("ready_sessions", "USING INDEX sessions_ready (lane=? AND agent=?)"),
        ("ready_pairs", "USING INDEX sessions_ready (lane=? AND agent>?)"),
        ("ready_pairs", "USING INDEX sessions_ready (lane>?)"),
        ("urgent_sessions", "USING INDEX sessions_urgent (deadline_at<?)"),
        ("next_due", "USING INDEX sessions_due (ready_at>?)"),
        ("next_deadline", "USING INDEX sessions_urgent (deadline_at>?)"),
        ("reserved_sessions", "USING INDEX sessions_reserved (reserved_until>?)"),
        ("reserved_sessions", "SEARCH queue USING INDEX queue_of_session (session=?)"),
        ("next_reserved", "USING INDEX sessions_reserved (reserved_until>?)"),
        ("sessions_of", "USING PRIMARY KEY (key=?)"),
        ("finish_runs", "SEARCH runs USING INTEGER PRIMARY KEY (rowid=?)"),
        ("leave_queue", "SEARCH queue USING INTEGER PRIMARY KEY (rowid=?)"),
        ("end_attempts", "SEARCH attempts USING INTEGER PRIMARY KEY (rowid=?)"),
        ("places", "SEARCH line USING INDEX queue_of_session (session=? AND seq>?)"),
        ("places", "SEARCH queue USING INTEGER PRIMARY KEY (rowid=?)"),
        ("open_orders", "SEARCH line USING INDEX orders_open (session=? AND seq>?)"),
        ("own", "SEARCH sessions USING PRIMARY KEY (key=?)"),
        ("with_news", "SEARCH sessions USING PRIMARY KEY (key=?)"),
        ("past_retention", "USING INDEX runs_ended (task=? AND finished_at<?)"),
        ("due_deliveries", "USING INDEX outbox_due (channel=? AND due_at<?)"),
        ("views", "SEARCH runs USING INDEX sqlite_autoindex_runs_1 (id=?)"),
        ("count_letters", "SCAN outbox USING INDEX outbox_due"),
        ("count_letters", "SCAN outbox USING INDEX outbox_dead"),
    ],
)
def test_n17_hot_statements_use_their_index(tmp_path: Path, name: str, plan: str) -> None:
    async def main() -> None:
        store = await opened(tmp_path / "h.db")
        text, _ = STATEMENTS[name].sized(32)
        values = _fit(text, [None] * text.count("?"))
        rows = await store._read(lambda db: db.plain(f"EXPLAIN QUERY PLAN {text}", values))
        steps = [str(row[3]) for row in rows]
        assert any(plan in step for step in steps), steps
        tables = ("runs", "queue", "sessions", "attempts")
        assert not [step for step in steps if step in {f"SCAN {table}" for table in tables}]
        await store.close()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("query", "plan"),
    [
        (RunQuery(source=Source.TASK), "SCAN runs USING INDEX runs_tasks"),
        (RunQuery(source=Source.TASK, agent="a"), "SCAN runs USING INDEX runs_tasks"),
        (
            RunQuery(source=Source.TASK, agent="a", state=State.DONE, cursor="9"),
            "SEARCH runs USING INDEX runs_tasks (number<?)",
        ),
        (
            RunQuery(source=Source.TASK, state=State.QUEUED),
            "SEARCH runs USING INTEGER PRIMARY KEY (rowid=?)",
        ),
        (
            RunQuery(source=Source.FIRING, session="s"),
            "SEARCH runs USING INDEX runs_of_session (session=?)",
        ),
    ],
)
def test_t1_a_list_of_tasks_looks_at_tasks_only(tmp_path: Path, query: RunQuery, plan: str) -> None:
    async def main() -> None:
        store = await opened(tmp_path / "h.db")
        asked: list[str] = []
        await store._read(lambda db: db._connection.set_trace_callback(asked.append))
        await store.list(query)
        await store._read(lambda db: db._connection.set_trace_callback(None))
        (text,) = [statement for statement in asked if "FROM runs" in statement]
        rows = await store._read(lambda db: db.plain(f"EXPLAIN QUERY PLAN {text}"))
        steps = [str(row[3]) for row in rows]
        assert plan in steps, steps
        assert not [step for step in steps if "TEMP B-TREE" in step]
        await store.close()

    asyncio.run(main())


def test_t5_runs_that_come_together_share_a_transaction_with_the_rest(tmp_path: Path) -> None:
    async def main() -> None:
        store = await opened(tmp_path / "h.db")
        commits = 0

        def count(statement: str) -> None:
            nonlocal commits
            commits += statement == "COMMIT"

        await store._write(lambda db: db._connection.set_trace_callback(count))
        commits = 0
        batches = [[a_run(f"{n}-{m}", f"{n}-{m}") for m in range(10)] for n in range(50)]
        said = await asyncio.gather(
            *(store.admit_together(batch, [True] * 10) for batch in batches),
            *(store.admit(a_run(n, f"s{n}")) for n in range(50)),
        )
        assert len(said) == 100
        assert commits <= 6
        assert (await store.nodes())[0].sessions == 550
        await store.close()

    asyncio.run(main())


def test_f1_a_transaction_that_was_given_up_leaves_no_wrong_count(tmp_path: Path) -> None:
    """In it the tasks had ended; now they wait again, and are counted."""

    async def main() -> None:
        settings = Settings(limits=Limits(max_queue=3, max_queue_per_agent=3))
        store = await opened(tmp_path / "h.db", settings)
        first = [a_run(f"f{n}", f"f{n}", source=Source.TASK) for n in range(3)]
        taken = await store.admit_together(first, [True] * 3)
        assert not isinstance(taken, TurnedAway)
        grants = [answer for answer in taken if isinstance(answer, Granted)]
        ends = [finish(run, grant) for run, grant in zip(first, grants, strict=True)]
        more = [a_run(f"m{n}", f"m{n}", source=Source.TASK) for n in range(2)]

        def fail(_: Database) -> None:
            raise sqlite3.OperationalError("disk I/O error")

        gate = threading.Event()
        asked = [
            asyncio.ensure_future(one)
            for one in (
                store._write(lambda _: gate.wait(10)),
                store.record(ends),
                store.admit_together(more, [True] * 2),
                store._write(fail),
            )
        ]
        await asyncio.sleep(0)  # now all have been asked for, and the last three go together
        gate.set()
        _, *said = await asyncio.gather(*asked, return_exceptions=True)
        assert all(isinstance(answer, HeadwayError) for answer in said), said
        assert isinstance(await store.admit_together(more[:1], [True]), TurnedAway)
        await store.record(ends)
        kept = await store.admit_together(more, [True] * 2)
        assert not isinstance(kept, TurnedAway)
        await store.close()

    asyncio.run(main())
