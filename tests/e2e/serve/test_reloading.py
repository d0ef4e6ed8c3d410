"""Live reload of one limit starts exactly what it now may, and changes nothing else (F-1, O-1, O-2)."""

import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e.gateway.cast import gate
from tests.e2e.gateway.servers import Server, serving
from tests.e2e.serve.asking import submit, tasks, until

FILE = """
[lanes]
main = 12

[limits]
max_inflight = {inflight}
max_queue = 77

[queue]
cap = {cap}
"""


def write(folder: Path, inflight: object, cap: int = 7) -> Path:
    path = folder / "headway.toml"
    path.write_text(FILE.format(inflight=inflight, cap=cap))
    return path


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """Two of six tasks run, the others are held back by the limit alone; one lane was changed by hand."""
    with serving(tmp_path, None, "--config", str(write(tmp_path, 2))) as started:
        changed = started.http.put("/lanes/cron", json={"width": 3})
        assert changed.status_code == httpx.codes.OK, changed.text
        for _ in range(6):
            submit(started, "greedy", params={"gate": "door"})
        until(lambda: len(tasks(started, "running")) == 2, "two run")
        yield started
        gate("door", tmp_path).touch()


def state(server: Server) -> dict[str, object]:
    """All that a reload could change."""
    stats = server.http.get("/scheduler/stats").raise_for_status().json()
    lanes = server.http.get("/lanes").raise_for_status().json()
    widths = {lane["name"]: (lane["width"], lane["reserve"]) for lane in lanes["lanes"]}
    return {"limits": stats["limits"], "widths": widths}


def check_only_the_limit_changed(server: Server, before: dict[str, object], inflight: int) -> None:
    until(lambda: len(tasks(server, "running")) == inflight, f"{inflight} run")
    assert len(tasks(server, "queued")) == 6 - inflight
    limits = before["limits"]
    assert isinstance(limits, dict)
    assert state(server) == {**before, "limits": {**limits, "maxInflight": inflight}}


def test_sighup_applies_one_limit_and_leaves_all_else(server: Server, tmp_path: Path) -> None:
    before = state(server)
    write(tmp_path, 4)
    server.process.signal(signal.SIGHUP)
    server.process.wait_for("reloaded: limits.max_inflight\n")
    check_only_the_limit_changed(server, before, 4)


def test_http_applies_it_too_and_says_what_changed(server: Server, tmp_path: Path) -> None:
    before = state(server)
    write(tmp_path, 3)
    answer = server.http.post("/config/reload").raise_for_status().json()
    assert answer["changed"] == ["limits.max_inflight"]
    assert answer["needsRestart"] == []
    check_only_the_limit_changed(server, before, 3)
    assert server.http.post("/config/reload").json()["changed"] == []


def test_o2_a_file_that_is_wrong_changes_nothing(server: Server, tmp_path: Path) -> None:
    before = state(server)
    write(tmp_path, '"many"', cap=9)
    server.process.signal(signal.SIGHUP)
    server.process.wait_for("reload refused, nothing was changed")
    server.process.wait_for("limits.max_inflight")
    assert server.http.post("/config/reload").status_code == httpx.codes.BAD_REQUEST
    assert state(server) == before
    assert len(tasks(server, "running")) == 2


def test_what_needs_a_new_start_is_said(server: Server, tmp_path: Path) -> None:
    path = write(tmp_path, 2)
    path.write_text(path.read_text() + "\n[server]\nmax_streams = 9\n")
    server.process.signal(signal.SIGHUP)
    server.process.wait_for("from the next start: server.max_streams")
