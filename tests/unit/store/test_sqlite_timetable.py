"""The SQLite store's own promises about jobs: their plans, their transactions, and what others hear of them."""

import asyncio
import os
import sqlite3
import subprocess
import sys
import textwrap
import threading
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from headway import Route, Settings, State
from headway.model.job import Advance, Entry, Job, JobRecord, Ticking
from headway.model.payload import Say
from headway.model.places import Delivery
from headway.model.run import AgentName, Firing, JobId, LaneName, Run, RunId, SessionKey
from headway.model.schedule import Every
from headway.model.time import HOUR, SECOND, Instant
from headway.model.words import Fired, Source
from headway.ports import Elsewhere, Granted, Hint, JobQuery, LetterQuery, LogQuery
from headway.store.codec import encode_delivery, encode_run
from headway.store.sqlite import SqliteStore, timetable
from headway.store.sqlite.database import Database
from headway.store.sqlite.statements import MIGRATIONS, STATEMENTS
from headway.testing import VirtualClock

A = AgentName("a")
MAIN = LaneName("main")
CLOCK = VirtualClock()
LEASE = 30 * SECOND
NOW = CLOCK.now()
HALF = "half of a pair: \ud83d"
ROOT = Path(__file__).parents[3]


def a_job(number: object, **fields: object) -> Job:
    job = Job(JobId(f"j-{number}"), f"name {number}", A, Every(HOUR, NOW), Say("hello"), NOW)
    return msgspec.structs.replace(job, **fields)


def firing(job: Job, version: int, due_at: Instant, **fields: object) -> Advance:
    """A job goes on with one run in a session of its own."""
    run_id = RunId(f"{job.id}-{due_at}")
    run = Run(
        run_id,
        job.agent,
        SessionKey(f"job:{run_id}"),
        Source.FIRING,
        LaneName("cron"),
        10,
        due_at,
        firing=Firing(job.id, due_at),
    )
    said = Advance(
        job.id,
        version,
        Ticking(version, due_at + HOUR),
        runs=(run,),
        claims=(True,),
        entries=(Entry(job.id, due_at, Fired.ON_TIME, due_at, run_id),),
    )
    return msgspec.structs.replace(said, **fields)


async def opened(path: Path | str) -> SqliteStore:
    """As a process that owns the file."""
    store = SqliteStore(str(path), Settings(), CLOCK)
    await store.open()
    await store.enlist("one", LEASE)
    return store


def in_another_process(text: str, path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text), str(path)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


# Other processes.

_ASKER = """
    import asyncio, sys
    from headway import Settings
    from headway.model.job import Ticking
    from headway.store.sqlite import SqliteStore
    from tests.unit.store.test_sqlite_timetable import CLOCK, NOW, a_job, firing

    async def main() -> None:
        store = SqliteStore(sys.argv[1], Settings(), CLOCK)
        await store.open()
        assert await store.add_job(a_job(1), Ticking(next_at=NOW))
        ((admission,),) = await store.advance([firing(a_job(1), 1, NOW)])
        print(type(admission).__name__, admission.owned)
        await store.close()

    asyncio.run(main())
"""


def test_c12_n21_who_is_no_owner_adds_and_fires_a_job_and_wakes_the_owner(tmp_path: Path) -> None:
    async def main() -> None:
        path = tmp_path / "h.db"
        heard: asyncio.Queue[Hint] = asyncio.Queue()
        owner = SqliteStore(str(path), Settings(), CLOCK)
        await owner.open(heard.put_nowait)
        await owner.enlist("one", LEASE)
        asked = await asyncio.to_thread(in_another_process, _ASKER, path)
        assert asked.stdout.split() == ["Elsewhere", "False"], asked.stderr
        async with asyncio.timeout(60):
            while await heard.get() is not Hint.ALL:
                pass
        record = await owner.find_job(JobId("j-1"))
        assert record is not None
        assert record.ticking == Ticking(2, NOW + HOUR)
        (holding,) = (await owner.claim({LaneName("cron"): 9}, [A], NOW)).holdings
        assert [place.run.firing for place in holding.places] == [Firing(JobId("j-1"), NOW)]
        await owner.close()

    asyncio.run(main())


_KILLED = """
    import asyncio, os, signal, sys, threading
    from headway import Settings
    from headway.model.job import Ticking
    from headway.store.sqlite import SqliteStore
    from tests.unit.store.test_sqlite_timetable import CLOCK, LEASE, NOW, a_job, firing

    async def main() -> None:
        store = SqliteStore(sys.argv[1], Settings(), CLOCK)
        await store.open()
        await store.enlist("killed", LEASE)
        jobs = [a_job(number) for number in range(50)]
        await asyncio.gather(*(store.add_job(job, Ticking(next_at=NOW)) for job in jobs))
        for turn in range(1, 1_000):
            if turn == 8:
                # Between this and the next commit, wherever that is.
                kill = (os.getpid(), signal.SIGKILL)
                threading.Timer(0.01, os.kill, kill).start()
            answers = await store.advance([firing(job, turn, NOW + turn) for job in jobs])
            assert None not in answers
            print(turn, flush=True)

    asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_c5_d1_after_a_kill_every_firing_is_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "h.db"
    killed = in_another_process(_KILLED, path)
    acknowledged = [int(turn) for turn in killed.stdout.split()]
    assert killed.returncode < 0, killed.stderr
    assert len(acknowledged) >= 7, killed.stderr

    async def main() -> None:
        store = await opened(path)
        records = (await store.list_jobs(JobQuery())).jobs
        assert len(records) == 50
        fired = {record.ticking.version - 1 for record in records}
        assert len(fired) == 1, "all of a batch, or nothing"
        (turns,) = fired
        assert acknowledged[-1] <= turns <= acknowledged[-1] + 1
        for record in records:
            assert record.ticking.next_at == NOW + turns + HOUR
            entries = (await store.job_log(LogQuery(record.job.id, limit=5_000))).entries
            dues = [entry.due_at for entry in entries]
            assert dues == [NOW + turn for turn in range(turns, 0, -1)]
            assert {entry.state for entry in entries} == {State.QUEUED}
        await store.close()

    asyncio.run(main())


# Transactions.


def test_n15_one_job_that_cannot_go_on_does_not_hold_up_those_it_came_with(tmp_path: Path) -> None:
    async def main() -> None:
        store = await opened(tmp_path / "h.db")
        jobs = [a_job(number) for number in range(4)]
        for job in jobs:
            assert await store.add_job(job, Ticking(next_at=NOW))
        steps = [firing(job, 1, NOW) for job in jobs]
        # No number of the database is so large; and a run that is there already.
        late = msgspec.structs.replace(steps[1].runs[0], priority=1 << 62)
        steps[1] = msgspec.structs.replace(steps[1], runs=(late,))
        assert isinstance(await store.admit(steps[2].runs[0]), Granted)
        answers = await store.advance(steps)
        assert [answer is None for answer in answers] == [False, True, True, False]
        versions = []
        for job in jobs:
            record = await store.find_job(job.id)
            assert record is not None
            versions.append(record.ticking.version)
        assert versions == [2, 1, 1, 2]
        assert len((await store.job_log(LogQuery())).entries) == 2
        kept = await store._read(lambda db: db.plain("SELECT kind, fields FROM events"))
        assert [(kind, "j-1" in str(fields)) for kind, fields in kept] == [("write_failed", True)]
        await store.close()

    asyncio.run(main())


def test_c5_of_two_decisions_about_a_job_in_one_batch_each_goes_by_its_version(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        store = await opened(tmp_path / "h.db")
        job = a_job(1)
        assert await store.add_job(job, Ticking(next_at=NOW))
        first, again, second = (
            firing(job, 1, NOW),
            firing(job, 1, NOW + 1),
            firing(job, 2, NOW + 2),
        )
        gone, after = firing(job, 3, NOW + 3, delete=True), firing(job, 4, NOW + 4)
        answers = await store.advance([first, again, second])
        assert [answer is None for answer in answers] == [False, True, False]
        record = await store.find_job(job.id)
        assert record is not None
        assert record.ticking == Ticking(3, NOW + 2 + HOUR)
        answers = await store.advance([gone, after])
        assert [answer is None for answer in answers] == [False, True]
        assert await store.find_job(job.id) is None
        log = (await store.job_log(LogQuery(job.id))).entries
        assert [entry.due_at - NOW for entry in log] == [3, 2, 0]
        await store.close()

    asyncio.run(main())


def test_c11_reading_answers_while_the_writer_is_busy(tmp_path: Path) -> None:
    async def main() -> None:
        store = await opened(tmp_path / "h.db")
        job = a_job(1)
        assert await store.add_job(job, Ticking(next_at=NOW))
        assert await store.advance([firing(job, 1, NOW)]) != [None]
        busy, go_on = threading.Event(), threading.Event()

        def hold(database: Database) -> None:
            database.run("remove_job", job.id)
            busy.set()
            assert go_on.wait(60)

        writing = asyncio.ensure_future(store._write(hold))
        await asyncio.to_thread(busy.wait, 60)
        async with asyncio.timeout(60):
            (due,) = (await store.due_jobs(NOW + HOUR, 9, ("agent:a",))).jobs
            assert due.ticking.version == 2
            assert len((await store.list_jobs(JobQuery())).jobs) == 1
            assert len((await store.job_log(LogQuery(job.id))).entries) == 1
            assert await store.find_job_named(A, job.name) is not None
            assert list(await store.settled_jobs(9)) == []
            assert (await store.letters(LetterQuery())).letters == ()
            assert (await store.text("checklist"), await store.last_route(A)) == (None, None)
        go_on.set()
        await writing
        assert await store.find_job(job.id) is None
        await store.close()

    asyncio.run(main())


def test_a_database_in_memory_keeps_jobs_too() -> None:
    async def main() -> None:
        store = await opened(":memory:")
        job = a_job(1)
        assert await store.add_job(job, Ticking(next_at=NOW))
        ((admission,),) = await store.advance([firing(job, 1, NOW)])  # type: ignore[misc]
        assert isinstance(admission, Granted)
        (record,) = (await store.due_jobs(NOW + HOUR, 9, ("agent:a",))).jobs
        assert [past.state for past in record.recent] == [State.QUEUED]
        await store.close()

    asyncio.run(main())


def test_n15_no_text_of_a_person_or_a_program_keeps_a_job_from_going_on(tmp_path: Path) -> None:
    async def main() -> None:
        store = await opened(tmp_path / "h.db")
        job = a_job(1, payload=Say(HALF))
        assert await store.add_job(job, Ticking(next_at=NOW, paused=HALF))
        line = Entry(job.id, NOW, Fired.SKIPPED, NOW, reason=HALF)
        route = Route("web", peer=HALF)
        notice = Delivery("d", route, HALF, RunId(""), SessionKey(""), 0, first_at=NOW, once=HALF)
        step = firing(
            job, 1, NOW, runs=(), claims=(), entries=(line,), notices=(notice,), enabled=False
        )
        assert await store.advance([step]) == [()]
        await store.keep_text("checklist", HALF)
        await store.note_routes({A: route}, NOW)
        await store.settle_delivery(notice, None, HALF)
        record = await store.find_job(job.id)
        assert record is not None
        assert record.job.payload == job.payload
        (kept,) = (await store.job_log(LogQuery(job.id))).entries
        assert kept.reason == HALF
        assert (await store.text("checklist"), await store.last_route(A)) == (HALF, route)
        (letter,) = (await store.letters(LetterQuery())).letters
        assert (letter.text, letter.error) == (HALF, "half of a pair: \\ud83d")
        await store.close()

    asyncio.run(main())


# Other versions.


def test_n20_jobs_that_this_version_cannot_read_are_left_to_others(tmp_path: Path) -> None:
    path = tmp_path / "h.db"

    async def main() -> None:
        store = await opened(path)
        for number in range(8):
            due_at = NOW - 100 + number
            assert await store.add_job(a_job(number), Ticking(next_at=due_at))
        assert await store.add_job(a_job("later"), Ticking(next_at=NOW + 5))
        for name in ("settled", "strange settled"):
            assert await store.add_job(a_job(name), Ticking())
        with sqlite3.connect(path, isolation_level=None) as newer:
            newer.execute(
                "UPDATE jobs SET body = replace(body, '\"every\"', '\"whenever\"')"
                " WHERE id IN ('j-0', 'j-1', 'j-2', 'j-4', 'j-strange settled')"
            )
        newer.close()
        due = await store.due_jobs(NOW, 2, ("agent:a",))
        assert _ids(due.jobs) == ["j-3", "j-5"]
        assert due.more
        due = await store.due_jobs(NOW, 4, ("agent:a",))
        assert _ids(due.jobs) == ["j-3", "j-5", "j-6", "j-7"]
        assert (due.next_at, due.more) == (NOW + 5, False)
        assert _ids(await store.settled_jobs(9)) == ["j-settled"]
        await store.close()

    asyncio.run(main())


def _ids(records: Sequence[JobRecord]) -> list[str]:
    return [record.job.id for record in records]


def test_d10_a_database_of_the_first_version_is_brought_forward_with_what_is_in_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "h.db"
    run = Run(RunId("r-1"), A, SessionKey("s"), Source.MESSAGE, MAIN, 0, NOW, text="waits")
    letter = Delivery("d-1", Route("web"), "hello", run.id, run.session, 1, first_at=NOW)
    with sqlite3.connect(path) as old:
        old.executescript(MIGRATIONS[0].text)
        old.execute("UPDATE meta SET value = 1 WHERE name IN ('version', 'runs', 'epochs')")
        old.execute(
            "INSERT INTO runs (number, id, session, agent, task, body) VALUES (1, ?, ?, ?, 0, ?)",
            (run.id, run.session, run.agent, encode_run(run)),
        )
        old.execute(
            "INSERT INTO queue (number, session, seq, agent, lane, task, rank, ready_at, state)"
            " VALUES (1, ?, 1, ?, ?, 0, ?, ?, 'queued')",
            (run.session, A, MAIN, NOW, NOW),
        )
        old.execute(
            "INSERT INTO sessions (key, epoch, last_seq, lane, agent, rank, first, ready_at)"
            " VALUES (?, 0, 1, ?, ?, ?, 1, ?)",
            (run.session, MAIN, A, NOW, NOW),
        )
        old.execute(
            "INSERT INTO outbox (id, channel, due_at, first_at, tries, dead, error, body)"
            " VALUES (?, 'web', ?, ?, 4, 1, 'gone', ?)",
            (letter.id, NOW, NOW, encode_delivery(letter)),
        )
    old.close()

    async def main() -> None:
        store = SqliteStore(str(path), Settings(), CLOCK)
        assert (await store.status()).pending == tuple(step.name for step in MIGRATIONS[1:])
        await store.open()
        await store.enlist("one", LEASE)
        (holding,) = (await store.claim({MAIN: 9}, [A], NOW)).holdings
        assert [place.run for place in holding.places] == [run]
        (dead,) = (await store.letters(LetterQuery())).letters
        assert dead == msgspec.structs.replace(letter, tries=4, error="gone")
        job = a_job(1)
        assert await store.add_job(job, Ticking(next_at=NOW))
        ((admission,),) = await store.advance([firing(job, 1, NOW)])  # type: ignore[misc]
        assert isinstance(admission, Granted)
        (entry,) = (await store.job_log(LogQuery(job.id))).entries
        assert entry.state is State.QUEUED
        await store.close()

    asyncio.run(main())


def test_d10_n20_a_program_of_the_first_version_goes_on_beside_the_new_tables(
    tmp_path: Path,
) -> None:
    """What it writes has none of the new columns."""
    path = tmp_path / "h.db"

    async def main() -> None:
        store = await opened(path)
        run = Run(RunId("r-1"), A, SessionKey("s"), Source.MESSAGE, MAIN, 0, NOW)
        with sqlite3.connect(path, isolation_level=None) as old:
            old.execute(
                "INSERT INTO runs (number, id, session, agent, task, body)"
                " VALUES (1, ?, ?, ?, 0, ?)",
                (run.id, run.session, run.agent, encode_run(run)),
            )
            old.execute(
                "INSERT INTO queue (number, session, seq, agent, lane, task, rank, ready_at, state)"
                " VALUES (1, ?, 1, ?, ?, 0, 0, 0, 'queued')",
                (run.session, A, MAIN),
            )
            old.execute("UPDATE meta SET value = 1 WHERE name = 'runs'")
        old.close()
        view = await store.find(run.id)
        assert view is not None
        assert view.state is State.QUEUED
        assert await store.admit(
            msgspec.structs.replace(run, id=RunId("r-2")), claim=False
        ) == Elsewhere(1, owned=False)
        await store.close()

    asyncio.run(main())


# SQL.

_RECORDS = (
    "SEARCH jobs USING INTEGER PRIMARY KEY (rowid=?)",
    "SEARCH line USING COVERING INDEX firings_made (job=?)",
    "SEARCH runs USING COVERING INDEX runs_fired (number=?)",
    "SEARCH attempts USING INTEGER PRIMARY KEY (rowid=?)",
    "SEARCH queue USING INTEGER PRIMARY KEY (rowid=?)",
)


@pytest.mark.parametrize(
    ("text", "plan"),
    [
        (
            f"{timetable._RECORDS} ({STATEMENTS['jobs_due_by'].text})",
            ("SEARCH jobs USING COVERING INDEX jobs_due (due_at>? AND due_at<?)", *_RECORDS),
        ),
        (
            f"{timetable._RECORDS} ({STATEMENTS['jobs_settled'].text})",
            ("SCAN jobs USING INDEX jobs_settled", *_RECORDS),
        ),
        (
            f"{timetable._RECORDS} ({STATEMENTS['job_of_id'].text})",
            ("SEARCH jobs USING COVERING INDEX sqlite_autoindex_jobs_1 (id=?)", *_RECORDS),
        ),
        (
            f"{timetable._RECORDS} ({STATEMENTS['job_named'].text})",
            ("SEARCH jobs USING COVERING INDEX jobs_named (agent=? AND name=?)", *_RECORDS),
        ),
        (
            STATEMENTS["next_job"].text,
            ("SEARCH jobs USING COVERING INDEX jobs_due (due_at>?)",),
        ),
        (
            f"{timetable._LINES} ({STATEMENTS['lines_of_job'].text})",
            (
                "SEARCH firings USING INTEGER PRIMARY KEY (rowid=?)",
                "SEARCH firings USING COVERING INDEX firings_made (job=? AND number<?)",
                "SEARCH firings USING INDEX firings_unmade (job=? AND number<?)",
            ),
        ),
        (
            f"{timetable._LINES} ({STATEMENTS['lines_of_all'].text})",
            ("SEARCH firings USING INTEGER PRIMARY KEY (rowid<?)",),
        ),
        (
            STATEMENTS["last_lines"].sized(32)[0],
            (
                "SEARCH line USING COVERING INDEX firings_made (job=?)",
                "SEARCH runs USING COVERING INDEX runs_fired (number=?",
            ),
        ),
        (
            STATEMENTS["standing_jobs"].sized(32)[0],
            ("SEARCH jobs USING INDEX sqlite_autoindex_jobs_1 (id=?)",),
        ),
        (
            STATEMENTS["advance_jobs"].sized(32)[0],
            ("SEARCH jobs USING COVERING INDEX sqlite_autoindex_jobs_1 (id=?)",),
        ),
        (
            STATEMENTS["fired_already"].sized(32)[0],
            ("SEARCH firings USING INDEX firings_once (due_at=? AND job=?)",),
        ),
        (
            STATEMENTS["add_firings"].sized(32)[0],
            ("SEARCH runs USING COVERING INDEX sqlite_autoindex_runs_1 (id=?)",),
        ),
        (
            STATEMENTS["forget_firings"].text,
            ("SEARCH firings USING INDEX firings_at (at<?)",),
        ),
        (
            STATEMENTS["forget_dead_letters"].text,
            ("SEARCH outbox USING INDEX outbox_dead (first_at<?)",),
        ),
    ],
    ids=lambda value: None,
)
def test_c5_what_is_done_at_each_firing_uses_its_index(
    tmp_path: Path, text: str, plan: tuple[str, ...]
) -> None:
    async def main() -> None:
        store = await opened(tmp_path / "h.db")
        rows = await store._read(lambda db: db.plain(f"EXPLAIN QUERY PLAN {text}", _values(text)))
        steps = [str(row[3]) for row in rows]
        for step in plan:
            assert any(step in found for found in steps), steps
        tables = ("jobs", "firings", "line", "runs", "queue", "attempts", "outbox")
        assert not [step for step in steps if step in {f"SCAN {table}" for table in tables}]
        await store.close()

    asyncio.run(main())


def _values(text: str) -> list[None]:
    numbered = {part[0] for part in text.split("?")[1:] if part[:1].isdigit()}
    return [None] * (len(numbered) or text.count("?"))
