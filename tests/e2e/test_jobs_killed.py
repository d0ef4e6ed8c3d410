"""C-5 with real processes: a worker with jobs of every second is killed often, and no due time is lost."""

import os
import random
import sqlite3
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from headway.model.schedule import Every
from headway.model.time import SECOND
from headway.store.codec import decode_job
from tests.e2e.processes import ended_at_last, worker
from tests.e2e.serve.asking import until

AGENTS = "tests.e2e.ticking:hw"
KILLS = int(os.environ.get("HEADWAY_JOB_KILLS", "4"))
SEED = int(os.environ.get("HEADWAY_CHAOS_SEED", "1"))


@pytest.mark.timeout(300 + 60 * KILLS)
def test_c5_killed_again_and_again_no_due_time_runs_twice_and_none_has_no_line(
    tmp_path: Path,
) -> None:
    chance = random.Random(SEED)
    store = f"sqlite:///{tmp_path / 'headway.db'}"
    for number in range(KILLS):
        node = worker(f"node{number}", AGENTS, store, tmp_path)
        with ended_at_last([node]):
            node.wait_for(" runs ")
            # Around the full second of the jobs as well as between them.
            time.sleep(chance.uniform(0.3, 1.6))
            assert node.alive, node.printed
            node.kill()
    last = worker("last", AGENTS, store, tmp_path)
    with ended_at_last([last]):
        last.wait_for(" runs ")
        until(
            lambda: on_time(tmp_path / "headway.db") > 3 * KILLS,
            "enough happened to prove something",
        )
        assert last.end() == 0
    check(tmp_path / "headway.db", (tmp_path / "fired").read_text().splitlines())


def on_time(file: Path) -> int:
    with closing(sqlite3.connect(file)) as database:
        counted = database.execute("select count(*) from firings where kind = 'on_time'")
        return int(counted.fetchone()[0])


def check(file: Path, fired: list[str]) -> None:
    with closing(sqlite3.connect(file)) as database:
        jobs = database.execute("select id, body, next_at from jobs").fetchall()
        lines = database.execute(
            "select job, due_at, kind, run, count from firings order by job, due_at"
        ).fetchall()
        open_runs = database.execute("select count(*) from queue").fetchone()[0]
    assert len(jobs) == 3

    made = Counter((job, due_at) for job, due_at, _, run, _ in lines if run is not None)
    assert max(made.values()) == 1
    noted = Counter((line.split()[0], int(line.split()[1])) for line in fired)
    assert [due for due, count in noted.items() if count > 1] == [], "begun twice"
    assert noted.keys() <= made.keys()
    # A firing is tried once (D-7): what a kill has cut is not begun again, and everything else was begun.
    assert len(made.keys() - noted.keys()) <= open_runs + 3 * KILLS

    for job, body, next_at in jobs:
        schedule = decode_job(body, enabled=True).schedule
        assert isinstance(schedule, Every)
        expected = schedule.anchor
        for line_job, due_at, _, _, count in lines:
            if line_job == job:
                assert due_at == expected, f"{job} has no line for {expected}"
                expected += count * SECOND
        assert next_at == expected
