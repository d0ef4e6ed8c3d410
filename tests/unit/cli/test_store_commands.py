"""`headway worker`, `nodes` and `db` as processes on real stores: what they print, and how they end."""

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.postgres import GUARDED_USER, fresh_url, own_server
from tests.unit.cli.running import TIMEOUT_S, environment_of, headway

AGENTS = """\
import asyncio
from pathlib import Path
from headway import Headway, Turn

hw = Headway()


@hw.agent("support")
async def support(turn: Turn) -> str:
    while not Path(turn.text).exists():
        await asyncio.sleep(0.01)
    return turn.text
"""

SUBMIT = """\
import sys
import headway
from headway import Headway

async def main() -> None:
    hw = Headway(sys.argv[1], name="client")
    hw.remote_agent("support")
    async with hw:
        await hw.submit("support", sys.argv[2], session="chat")

headway.run(main())
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "agents.py").write_text(AGENTS, encoding="utf-8")
    (tmp_path / "submit.py").write_text(SUBMIT, encoding="utf-8")
    return tmp_path


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/work.db" if request.param == "sqlite" else fresh_url()


class Worker:
    """A `headway worker` and the lines that it has printed so far."""

    def __init__(self, folder: Path, *arguments: str, **environment: str) -> None:
        self.output = folder / "worker.output"
        with self.output.open("wb") as output:
            self.popen = subprocess.Popen(
                [sys.executable, "-m", "headway", "worker", "--agents", "agents:hw", *arguments],
                cwd=folder,
                env=environment_of(**environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    @property
    def lines(self) -> list[str]:
        return self.output.read_text(encoding="utf-8").splitlines()

    def wait_for(self, text: str) -> None:
        give_up_at = time.monotonic() + TIMEOUT_S
        while True:
            # In this order: it may print this and end between the two.
            ended = self.popen.poll() is not None
            if any(text in line for line in self.lines):
                return
            assert not ended, self.lines
            assert time.monotonic() < give_up_at, (text, self.lines)
            time.sleep(0.02)


@contextmanager
def running(folder: Path, *arguments: str, **environment: str) -> Iterator[Worker]:
    worker = Worker(folder, *arguments, **environment)
    try:
        worker.wait_for(" runs ")
        yield worker
    finally:
        worker.popen.kill()
        worker.popen.wait()


class TestDb:
    def test_migrate_says_what_it_ran_and_can_be_repeated(self, store: str) -> None:
        first = headway("db", "migrate", "--store", store)
        assert (first.returncode, first.stderr) == (0, "")
        assert re.fullmatch(r"(ran \d{4}[\w.]+\n)+", first.stdout)
        again = headway("db", "migrate", "--store", store)
        assert (again.returncode, again.stdout) == (0, "nothing to do: the store is up to date\n")

    def test_status_of_a_store_that_is_up_to_date(self, store: str) -> None:
        assert headway("db", "migrate", HEADWAY_STORE=store).returncode == 0
        ran = headway("db", "status", "--store", store, "--json")
        status = json.loads(ran.stdout)
        assert (status["pending"], status["runs"]) == ([], {})
        assert status["version"] == status["newest"] > 0
        assert status["size"] > 0
        text = headway("db", "status", "--store", store).stdout
        assert [line.split()[0] for line in text.splitlines()] == [
            "store",
            "version",
            "pending",
            "runs",
            "size",
        ]

    def test_status_changes_nothing(self, tmp_path: Path) -> None:
        missing = headway("db", "status", "--store", f"sqlite:///{tmp_path}/none.db")
        assert missing.returncode == 2
        assert "none.db" in missing.stderr
        assert list(tmp_path.iterdir()) == []
        empty = fresh_url()
        for _ in range(2):
            status = json.loads(headway("db", "status", "--store", empty, "--json").stdout)
            assert status["version"] == 0
            assert len(status["pending"]) == status["newest"]

    def test_a_file_that_is_no_database_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "letter.db"
        path.write_text("Dear database, " * 100, encoding="utf-8")
        for command in (("db", "migrate"), ("db", "status"), ("nodes",)):
            ran = headway(*command, "--store", f"sqlite:///{path}")
            assert ran.returncode == 2
            assert "not a SQLite database" in ran.stderr
            assert "Traceback" not in ran.stderr

    @pytest.mark.parametrize(
        ("url", "code", "said"),
        [
            ("ftp://somewhere", 2, "sqlite:///"),
            ("postgresql://postgres@127.0.0.1:1/postgres", 3, "127.0.0.1"),
            ("sqlite:////no/such/folder/work.db", 2, "/no/such/folder"),
        ],
    )
    def test_what_cannot_be_used_is_said_with_the_exit_code_of_its_family(
        self, url: str, code: int, said: str
    ) -> None:
        for command in (("db", "migrate"), ("db", "status"), ("nodes",)):
            ran = headway(*command, "--store", url)
            assert (ran.returncode, ran.stdout) == (code, "")
            assert said in ran.stderr
            assert ran.stderr.startswith("headway: ")

    def test_a_password_is_never_printed(self) -> None:
        server = own_server()
        url = f"postgresql://{GUARDED_USER}:wrong-secret@{server.host}:{server.port}/postgres"
        ran = headway("db", "migrate", "--store", url)
        assert ran.returncode == 2
        assert GUARDED_USER in ran.stderr
        assert "wrong-secret" not in ran.stderr


class TestNodes:
    def test_a_store_that_is_not_up_to_date_is_left_alone(self) -> None:
        store = fresh_url()
        ran = headway("nodes", "--store", store)
        assert ran.returncode == 2
        assert "headway db migrate" in ran.stderr
        status = json.loads(headway("db", "status", "--store", store, "--json").stdout)
        assert status["version"] == 0

    def test_nodes_are_shown_while_they_live_and_with_all_also_later(
        self, store: str, folder: Path
    ) -> None:
        with running(folder, "--store", store, "--name", "red") as worker:
            alive = json.loads(headway("nodes", "--store", store, "--json").stdout)["nodes"]
            assert [(node["name"], node["state"]) for node in alive] == [("red", "alive")]
            lines = headway("nodes", "--store", store).stdout.splitlines()
            head = ["node", "name", "machine", "state", "since", "sessions", "running"]
            assert lines[0].split() == head
            machine = alive[0]["host"]
            assert machine, "one that nobody named has the name of the system"
            assert lines[1].split()[1:4] == ["red", machine, "alive"]
            worker.popen.send_signal(signal.SIGTERM)
            assert worker.popen.wait(TIMEOUT_S) == 0, worker.lines
        assert headway("nodes", "--store", store).stdout == "no nodes\n"
        ended = json.loads(headway("nodes", "--store", store, "--all", "--json").stdout)["nodes"]
        assert [(node["name"], node["state"]) for node in ended] == [("red", "retired")]


class TestWorker:
    def test_l5_sigterm_waits_for_the_running_turn(self, folder: Path) -> None:
        store = fresh_url()
        with running(folder, "--store", store) as worker:
            _submit(folder, store, "go")
            _wait_until_running(store)
            worker.popen.send_signal(signal.SIGTERM)
            worker.wait_for("stopping: waiting for 1 running turn, up to 30s")
            (folder / "go").touch()
            assert worker.popen.wait(TIMEOUT_S) == 0
        runs = json.loads(headway("db", "status", "--store", store, "--json").stdout)["runs"]
        assert runs == {"done": 1}

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_the_second_signal_cuts_and_the_work_is_kept(
        self, folder: Path, number: signal.Signals
    ) -> None:
        store = fresh_url()
        with running(folder, HEADWAY_STORE=store) as worker:
            _submit(folder, store, "never")
            _wait_until_running(store)
            worker.popen.send_signal(number)
            worker.wait_for("stopping")
            worker.popen.send_signal(number)
            assert worker.popen.wait(TIMEOUT_S) == 0
            assert "cutting 1 running turn" in worker.lines
        runs = json.loads(headway("db", "status", "--store", store, "--json").stdout)["runs"]
        assert runs == {"queued": 1}

    def test_l6_sigusr1_restarts_in_place(self, folder: Path) -> None:
        store = fresh_url()
        with running(folder, "--store", store, "--name", "red") as worker:
            worker.popen.send_signal(signal.SIGUSR1)
            worker.wait_for("restarting in place: nothing runs")
            worker.wait_for("node 2 (red) runs support")
            told = json.loads(headway("nodes", "--store", store, "--all", "--json").stdout)
            assert [node["state"] for node in told["nodes"]] == ["alive", "retired"]

    def test_d2_a_second_owner_of_a_file_is_refused(self, folder: Path) -> None:
        store = f"sqlite:///{folder}/work.db"
        with running(folder, "--store", store) as worker:
            ran = headway("worker", "--agents", "agents:hw", "--store", store, folder=folder)
            assert ran.returncode == 2
            assert str(worker.popen.pid) in ran.stderr

    @pytest.mark.parametrize(
        ("arguments", "code", "said"),
        [
            (("--agents", "agents"), 2, "written module:name"),
            (("--agents", "nobody:hw"), 2, "no module 'nobody'"),
            (("--agents", "agents:hw"), 2, "give --store URL or set HEADWAY_STORE"),
            (
                ("--agents", "agents:hw", "--store", "sqlite:///x.db", "--grace", "soon"),
                2,
                "--grace",
            ),
            (("--agents", "agents:hw", "--store", "postgresql://127.0.0.1:1/x"), 3, "127.0.0.1"),
        ],
    )
    def test_what_cannot_be_is_said_in_one_line(
        self, folder: Path, arguments: tuple[str, ...], code: int, said: str
    ) -> None:
        ran = headway("worker", *arguments, folder=folder)
        assert (ran.returncode, ran.stdout) == (code, "")
        assert said in ran.stderr
        assert ran.stderr.count("\n") == 1


def _submit(folder: Path, store: str, text: str) -> None:
    subprocess.run([sys.executable, "submit.py", store, text], cwd=folder, check=True)


def _wait_until_running(store: str) -> None:
    give_up_at = time.monotonic() + TIMEOUT_S
    while True:
        ran = headway("db", "status", "--store", store, "--json")
        if json.loads(ran.stdout)["runs"].get("running"):
            return
        assert time.monotonic() < give_up_at
