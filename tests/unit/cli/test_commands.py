"""`headway` as a person meets it: help, version, exit codes, the demo without a terminal."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.cli.running import TIMEOUT_S, headway


@pytest.fixture(scope="module")
def told() -> subprocess.CompletedProcess[str]:
    return headway("demo", "--fast")


def test_help_names_every_command_and_says_where_to_begin() -> None:
    ran = headway("--help")
    assert ran.returncode == 0
    for command in (
        *("run", "send", "chat", "stop", "runs", "tasks", "jobs", "heartbeat", "top", "events"),
        *("lanes", "sessions", "nodes", "outbox", "health", "reload", "bench", "demo", "serve"),
        *("worker", "workers", "machine", "tokens", "config", "logs", "db"),
    ):
        assert command in ran.stdout
    assert "New here? Run: headway demo" in ran.stdout


def test_help_loads_no_more_than_it_needs() -> None:
    """Help must be quick: a command imports its parts only when it is called."""
    parts = (
        "headway.cli.demo.performance",
        "headway.cli.worker.service",
        "headway.store.sqlite",
        "asyncpg",
        "headway.client",
        "httpx",
        "litestar",
    )
    program = f"import sys, headway.cli; print(sorted(set({parts!r}) & sys.modules.keys()))"
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True
    )
    assert ran.stdout == "[]\n"


def test_version() -> None:
    ran = headway("--version")
    assert ran.returncode == 0
    assert ran.stdout.startswith("headway")


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("--nonsense", "No such option: --nonsense"),
        ("nonsense", "No such command 'nonsense'"),
        ("demo --nonsense", "No such option: --nonsense"),
        ("demo --seconds 0", "'--seconds'"),
        ("worker", "'--agents'"),
        ("db nonsense", "No such command 'nonsense'"),
    ],
)
def test_bad_usage_exits_2_and_says_why(line: str, complaint: str) -> None:
    ran = headway(*line.split())
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert complaint in ran.stderr


def test_the_demo_prints_one_line_per_notable_event(
    told: subprocess.CompletedProcess[str],
) -> None:
    assert told.returncode == 0
    assert told.stderr == ""
    notes = re.findall(r"^ +\d+\.\ds  (.+)$", told.stdout, re.MULTILINE)
    assert "ada: 4 messages became one turn" in notes
    assert notes.count("finn: full, oldest was dropped") == 3
    assert notes.count("nightly: made way for a person") == 3
    assert "lane main is 10 wide now" in notes
    assert "jon: researcher asks reader" in notes
    assert "gia: a new message took over" in notes
    assert "hal: the turn took a new message" in notes
    assert "dan: /stop: 1 running stopped" in notes
    assert "ben: /stopall: 1 running and 3 waiting stopped" in notes


def test_the_demo_ends_with_figures_that_add_up(told: subprocess.CompletedProcess[str]) -> None:
    rows = {
        name: [0 if figure == "-" else int(figure) for figure in figures.split()]
        for name, figures in re.findall(
            r"^(\w+) +((?:[\d-]+ +){6})\d+\.\d\d s", told.stdout, re.MULTILINE
        )
    }
    assert set(rows) == {"support", "coder", "researcher", "reader", "nightly", "all"}
    for runs, *ends in rows.values():
        assert runs == sum(ends)
    total = rows.pop("all")
    assert total == [sum(column) for column in zip(*rows.values(), strict=True)]


def test_the_demo_shows_that_its_promises_were_kept(
    told: subprocess.CompletedProcess[str],
) -> None:
    verdicts = re.findall(r"^(kept|BROKEN) ", told.stdout, re.MULTILINE)
    assert verdicts == ["kept"] * 5


def test_the_same_seed_tells_the_same_story(told: subprocess.CompletedProcess[str]) -> None:
    assert headway("demo", "--fast").stdout == told.stdout
    assert headway("demo", "--fast", "--seed", "8").stdout != told.stdout


def test_the_demo_ignores_lanes_of_the_environment(
    told: subprocess.CompletedProcess[str],
) -> None:
    assert headway("demo", "--fast", HEADWAY_LANE_MAIN="1").stdout == told.stdout


def test_the_demo_prints_plain_ascii_where_nothing_else_can_be_shown(
    told: subprocess.CompletedProcess[str],
) -> None:
    ran = headway("demo", "--fast", PYTHONIOENCODING="ascii")
    assert (ran.returncode, ran.stdout) == (0, told.stdout)


def test_the_picture_is_one_frame_that_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "frame.svg"
    assert headway("demo", "--picture", str(path)).returncode == 0
    frame = path.read_text(encoding="utf-8")
    assert frame.startswith("<svg")
    assert "10/10" in frame
    assert re.findall(r"(?:url\(|href=)[\"']?(?:https?:)?//", frame) == []


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGINT for one child process")
def test_ctrl_c_ends_the_demo_with_its_summary() -> None:
    demo = subprocess.Popen(
        [sys.executable, "-m", "headway", "demo"],
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )
    assert demo.stdout is not None
    for line in demo.stdout:
        if line.startswith("A quiet evening"):
            break
    demo.send_signal(signal.SIGINT)
    printed, complaints = demo.communicate(timeout=TIMEOUT_S)
    assert complaints == ""
    assert demo.returncode == 0
    assert printed.count("\nkept ") == 5
