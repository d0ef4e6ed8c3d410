"""`headway logs` (O-3): reads what a server wrote, over all its files."""

import json
import time
from pathlib import Path

import pytest

from headway.cli.logs import LOOK_AGAIN_S, as_text
from headway.config import places
from headway.logs.files import RotatedFile
from tests.unit.cli.calling import Shell

LINES: list[dict[str, object]] = [
    {"at": "t1", "level": "info", "event": "RunStarted", "runId": "r1", "session": "s 1"},
    {"at": "t2", "level": "debug", "event": "OutputEmitted", "runId": "r1", "session": "s 1"},
    {"at": "t3", "level": "warning", "event": "StoreAway", "error": "gone"},
    {"at": "t4", "level": "info", "event": "RunStarted", "runId": "r2", "session": "s2"},
    {"at": "t5", "level": "error", "event": "log", "logger": "x", "message": "m", "trace": "a\nb"},
]


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(places, "config_folder", lambda: tmp_path / "user")
    return Shell("")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log over several files."""
    path = tmp_path / "headway.log"
    file = RotatedFile(path, max_bytes=150, keep=9)
    file.write(json.dumps(line).encode() + b"\n" for line in LINES)
    file.close()
    assert len(list(tmp_path.iterdir())) > 2
    return path


def found(shell: Shell, log: Path, *options: str) -> list[str]:
    told = shell.ok("logs", "--file", str(log), "--json", *options)
    return [json.loads(line)["at"] for line in told.lines]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], ["t1", "t2", "t3", "t4", "t5"]),
        (["--lines", "2"], ["t4", "t5"]),
        (["-n", "0"], []),
        (["--level", "warning"], ["t3", "t5"]),
        (["--event", "RunStarted"], ["t1", "t4"]),
        (["--event", "runstarted", "-n", "1"], ["t4"]),
        (["--event", "log"], ["t5"]),
        (["--run", "r1"], ["t1", "t2"]),
        (["--session", "s2"], ["t4"]),
        (["--run", "r1", "--level", "info"], ["t1"]),
    ],
)
def test_o3_lines_are_chosen(
    shell: Shell, log: Path, options: list[str], expected: list[str]
) -> None:
    assert found(shell, log, *options) == expected


def test_o3_lines_for_people(shell: Shell, log: Path) -> None:
    told = shell.ok("logs", "--file", str(log))
    assert told.lines[0] == 't1  info     RunStarted  runId=r1  session="s 1"'
    assert told.lines[-3:] == ["t5  error    log  logger=x  message=m", "    a", "    b"]


def test_o3_the_configured_file_is_read(shell: Shell, log: Path) -> None:
    Path("headway.toml").write_text('[log]\nfile = "headway.log"\n')
    assert len(shell.ok("logs", "--json").lines) == len(LINES)
    assert len(shell.ok("logs", "--json", HEADWAY_LOG_FILE=str(log)).lines) == len(LINES)


def test_o3_no_log_is_refused(shell: Shell) -> None:
    assert "no log file is configured" in shell.refused("logs")
    assert "a log that a server has begun" in shell.refused("logs", "--file", "none.log")


def test_o3_an_unknown_event_is_refused_with_a_suggestion(shell: Shell, log: Path) -> None:
    said = shell.refused("logs", "--file", str(log), "--event", "RunStartd")
    assert "did you mean 'RunStarted'?" in said


def test_o3_following_shows_what_comes(
    shell: Shell, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each look finds what came since the last; Ctrl-C ends it well."""
    coming = [
        {"at": "t6", "level": "info", "event": "RunStarted"},
        {"at": "t7", "level": "debug", "event": "OutputEmitted"},
        {"at": "t8", "level": "info", "event": "RunStarted"},
    ]

    def meanwhile(seconds: float) -> None:
        assert seconds == LOOK_AGAIN_S
        if not coming:
            raise KeyboardInterrupt
        with log.open("a") as file:
            file.write(json.dumps(coming.pop(0)) + "\n")

    monkeypatch.setattr(time, "sleep", meanwhile)
    assert found(shell, log, "-n", "1", "--follow", "--level", "info") == ["t5", "t6", "t8"]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ({"at": "t", "level": "info", "event": "E"}, "t  info     E"),
        ({"at": "t", "level": "info", "event": "E", "a": None, "b": 0}, "t  info     E  b=0"),
        ({"at": "t", "level": "info", "event": "E", "a": "", "b": [""]}, 't  info     E  b=[""]'),
        ({"at": "t", "level": "info", "event": "E", "a": "x\ny"}, 't  info     E  a="x\\ny"'),
        ({"at": "t", "level": "info", "event": "E", "a": ["é", 1]}, 't  info     E  a=["é", 1]'),
        ({"odd": True}, "             odd=true"),
    ],
)
def test_o3_a_line_reads_on_one_line(line: dict[str, object], text: str) -> None:
    assert as_text(line) == text
