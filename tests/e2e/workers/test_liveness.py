"""Real commands under a real server: their signs of life, their death, and those that nobody wants (D-8)."""

import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from tests.e2e.cli.shell import Shell
from tests.e2e.gateway.servers import Server, serving

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no workers on Windows")

_WITHIN_S = 60.0
_AGENTS = "tests.e2e.workers.commands:hw"
_CONFIG = """\
[node]
beat_every = "500ms"
scan_every = "1s"
missed_beats = {missed}
adoption_grace = "1s"
cancel_grace = "2s"
"""


@contextmanager
def working(
    folder: Path, name: str = "server", missed: int = 600, **environment: str
) -> Iterator[Server]:
    """A server whose agents are commands, and which looks at its workers very often.

    So many beats may be missed: a busy machine misses some.
    """
    config = folder / "headway.toml"
    config.write_text(_CONFIG.format(missed=missed), encoding="utf-8")
    said = {"HEADWAY_STATE": str(folder / "state"), "HEADWAY_MACHINE": "here", **environment}
    store = f"sqlite:///{folder}/work.db"
    with serving(
        folder, store, "--config", str(config), name=name, agents=_AGENTS, environment=said
    ) as server:
        yield server


def begun(server: Server, agent: str) -> str:
    answer = server.http.post("/tasks", json={"agentId": agent, "action": "go", "deadline": "5m"})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["taskId"])


def eventually(look: Callable[[], Mapping[str, object] | None], why: str) -> Mapping[str, object]:
    give_up_at = time.monotonic() + _WITHIN_S
    while (found := look()) is None:
        assert time.monotonic() < give_up_at, why
        time.sleep(0.05)
    return found


def worker_of(
    server: Server, run: str, *states: str, attempt: int = 1
) -> Callable[[], Mapping[str, object] | None]:
    """The worker of a run, once it is in one of these states."""

    def look() -> Mapping[str, object] | None:
        answer = server.http.get(f"/workers/{run}.{attempt}")
        found: Mapping[str, object] = answer.json()
        return found if answer.status_code == 200 and found["state"] in states else None

    return look


def several_beats(server: Server, run: str) -> Callable[[], Mapping[str, object] | None]:
    def look() -> Mapping[str, object] | None:
        found: Mapping[str, object] = server.http.get(f"/workers/{run}.1").json()
        beats = found["beats"]
        assert isinstance(beats, list)
        return found if len(beats) >= 3 else None

    return look


def counted(server: Server, line: str) -> Callable[[], Mapping[str, object] | None]:
    def look() -> Mapping[str, object] | None:
        return {} if line in server.http.get("/metrics").text else None

    return look


def ended(server: Server, run: str) -> Callable[[], Mapping[str, object] | None]:
    def look() -> Mapping[str, object] | None:
        found: Mapping[str, object] = server.http.get(f"/runs/{run}").json()
        return found if found["outcome"] is not None else None

    return look


def gone(pid: int) -> Callable[[], Mapping[str, object] | None]:
    def look() -> Mapping[str, object] | None:
        try:
            lives = psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            lives = False
        return None if lives else {}

    return look


def test_d8_a_worker_beats_is_listed_everywhere_and_its_exit_code_stays(tmp_path: Path) -> None:
    with working(tmp_path) as server:
        loud, quick = begun(server, "loud"), begun(server, "quick")
        worker = eventually(worker_of(server, loud, "busy"), "it writes all the time")
        assert (worker["kind"], worker["host"]) == ("command", "here")
        assert psutil.pid_exists(int(str(worker["pid"])))
        assert "tick" in str(worker["lines"])
        shell = Shell(server)
        assert f"{loud}.1" in shell.ok("workers", "--agent", "loud")
        assert "here" in shell.ok("machine")
        machine = server.http.get("/machine").json()["machines"][0]
        assert machine["host"] == "here"
        assert 'headway_workers{kind="command"' in server.http.get("/metrics").text
        eventually(ended(server, quick), "it ends by itself")
        dead = eventually(worker_of(server, quick, "dead"), "its run has ended")
        assert dead["exitCode"] == 3
        eventually(several_beats(server, loud), "it shows again and again that it lives")
        assert server.http.post(f"/tasks/{loud}/cancel").status_code == 200
        eventually(gone(int(str(worker["pid"]))), "it was cancelled")


def test_d8_a_worker_that_shows_no_sign_of_life_is_killed_and_its_run_told(tmp_path: Path) -> None:
    """Its keeper is frozen, so nothing answers: after more than two missed beats it is dead (D-7)."""
    with working(tmp_path, missed=2) as server:
        run = begun(server, "loud")
        worker = eventually(worker_of(server, run, "busy", "alive", "idle"), "it lives")
        command = psutil.Process(int(str(worker["pid"])))
        keeper = command.parent()
        assert keeper is not None
        keeper.send_signal(signal.SIGSTOP)
        try:
            outcome = eventually(ended(server, run), "it is lost")["outcome"]
        finally:
            with suppress(psutil.NoSuchProcess):
                keeper.send_signal(signal.SIGCONT)
        assert isinstance(outcome, Mapping)
        assert (outcome["state"], outcome["reason"]) == ("failed", "orphaned")
        assert "no sign of life" in str(outcome["error"])
        eventually(gone(command.pid), "it is killed")
        eventually(gone(keeper.pid), "its keeper too")
        eventually(counted(server, "headway_worker_deaths_total 1.0"), "it is counted")


def test_d8_the_scan_ends_a_worker_whose_run_was_given_up(tmp_path: Path) -> None:
    """The server dies, and one that counts as another machine takes over: the run is orphaned, not adopted."""
    with working(tmp_path, "first") as server:
        run = begun(server, "loud")
        worker = eventually(worker_of(server, run, "busy", "alive", "idle"), "it lives")
        pid = int(str(worker["pid"]))
        server.process.kill()
        assert psutil.pid_exists(pid), "it outlives the server"
    with working(tmp_path, "second", HEADWAY_MACHINE="there") as server:
        outcome = eventually(ended(server, run), "nobody can adopt it")["outcome"]
        assert isinstance(outcome, Mapping)
        assert outcome["reason"] == "orphaned"
        eventually(gone(pid), "the scan ends it")
        eventually(worker_of(server, run, "dead"), "and says so")
