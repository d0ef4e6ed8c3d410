"""The log (O-3): writes what it hears at its level, and never stands in the server's way."""

import errno
import io
import json
import logging
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headway.logs import Log, open_log
from headway.logs import log as log_module
from headway.logs.files import RotatedFile
from headway.model.errors import InvalidInput
from headway.model.events import NodeDraining, OutputEmitted, StoreAway, StoreBack
from headway.model.run import AgentName, RunId, SessionKey
from headway.model.server import LogSettings
from headway.model.words import LogLevel
from headway.runtime.bus import Bus

AWAY = StoreAway(at=1, error="gone")
DRAINING = NodeDraining(at=2, running=3)
OUTPUT = OutputEmitted(
    at=3, run_id=RunId("r"), agent=AgentName("a"), session=SessionKey("s"), text="hi"
)


@contextmanager
def logging_to(stream: io.StringIO | None = None, **settings: object) -> Iterator[Log]:
    log = open_log(LogSettings(**settings), stream or io.StringIO())  # type: ignore[arg-type]
    try:
        yield log
    finally:
        log.close()


def lines(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        ("debug", ["StoreAway", "NodeDraining", "OutputEmitted"]),
        ("info", ["StoreAway", "NodeDraining"]),
        ("warning", ["StoreAway"]),
        ("error", []),
    ],
)
def test_o3_its_level_decides(level: str, expected: list[str]) -> None:
    stream = io.StringIO()
    with logging_to(stream, level=LogLevel(level)) as log:
        for event in (AWAY, DRAINING, OUTPUT):
            log.hear(event)
    assert [line["event"] for line in lines(stream.getvalue())] == expected


def test_o3_the_level_can_change_while_it_runs() -> None:
    stream = io.StringIO()
    with logging_to(stream, level=LogLevel.ERROR) as log:
        log.hear(AWAY)
        log.level = LogLevel.WARNING
        log.hear(StoreBack(at=2))
    assert [line["event"] for line in lines(stream.getvalue())] == ["StoreBack"]


def test_o3_stderr_and_the_file_hold_the_same_lines(tmp_path: Path) -> None:
    stream, path = io.StringIO(), tmp_path / "log"
    with logging_to(stream, file=str(path)) as log:
        log.hear(AWAY)
        log.hear(DRAINING)
    assert path.read_text() == stream.getvalue()
    assert len(lines(stream.getvalue())) == 2


def test_o3_a_notable_event_of_a_bus_is_one_line_though_the_bus_logs_it_too() -> None:
    stream, bus = io.StringIO(), Bus()
    with logging_to(stream) as log:
        untap = bus.tap(log.hear)
        bus.publish(AWAY)
        untap()
        bus.publish(DRAINING)
    assert [line["event"] for line in lines(stream.getvalue())] == ["StoreAway"]


def test_o3_a_notable_event_is_written_though_the_bus_is_not_tapped_yet() -> None:
    """A store that is away while the node starts."""
    stream, bus = io.StringIO(), Bus()
    with logging_to(stream) as log:
        bus.publish(AWAY)
        bus.tap(log.hear)
        bus.publish(StoreBack(at=2))
    assert [line["event"] for line in lines(stream.getvalue())] == ["StoreAway", "StoreBack"]


def test_o3_what_libraries_and_warnings_say_comes_too() -> None:
    stream = io.StringIO()
    with logging_to(stream), warnings.catch_warnings():
        warnings.simplefilter("always")
        # pytest put its own ear in between.
        logging.captureWarnings(False)
        logging.captureWarnings(True)
        logging.getLogger("asyncio").error("slow callback %s", "x")
        logging.getLogger("some.library").debug("unheard")
        warnings.warn("old ways", UserWarning, stacklevel=1)
    said = lines(stream.getvalue())
    assert [line["logger"] for line in said] == ["asyncio", "py.warnings"]
    assert said[0]["message"] == "slow callback x"
    assert "old ways" in str(said[1]["message"])


def test_o3_after_its_end_it_hears_nothing() -> None:
    stream = io.StringIO()
    handlers = list(logging.getLogger().handlers)
    with logging_to(stream):
        assert len(logging.getLogger().handlers) == len(handlers) + 1
    assert logging.getLogger().handlers == handlers


def test_o3_a_condition_that_lasts_is_one_line() -> None:
    stream = io.StringIO()
    with logging_to(stream) as log:
        for at in range(50):
            log.hear(StoreAway(at=at, error="gone"))
        log.hear(StoreBack(at=60))
        for _ in range(50):
            logging.getLogger("uvicorn.error").error("Exception in ASGI application")
    said = lines(stream.getvalue())
    assert [(line["event"], line.get("heldBack")) for line in said] == [
        ("StoreAway", None),
        ("StoreBack", 49),
        ("log", None),
    ]


def test_o3_a_full_disk_stops_nothing_and_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream goes on, says that the file does not, and says when it does again."""
    stream = io.StringIO()
    written = threading.Semaphore(0)
    real = RotatedFile.write
    broken = [True, True, False, False]

    def write(self: RotatedFile, batch: list[bytes]) -> None:
        try:
            if broken.pop(0):
                raise OSError(errno.ENOSPC, "No space left on device")
            real(self, batch)
        finally:
            written.release()

    monkeypatch.setattr(RotatedFile, "write", write)
    with logging_to(stream, file=str(tmp_path / "log")) as log:
        for number in range(4):
            log.hear(NodeDraining(at=number, running=number))
            assert written.acquire(timeout=60)
    said = [line.get("running", line.get("message")) for line in lines(stream.getvalue())]
    assert said == [
        0,
        "the log file cannot be written: No space left on device",
        1,
        2,
        "the log file can be written again",
        3,
    ]
    assert [line["running"] for line in lines((tmp_path / "log").read_text())] == [2, 3]


class Stuck(io.StringIO):
    """A terminal that takes nothing until it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = threading.Event()
        self.let = threading.Event()

    def write(self, text: str) -> int:
        self.reached.set()
        assert self.let.wait(30)
        return super().write(text)


def test_o3_a_terminal_that_takes_nothing_costs_lines_not_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_module, "MOST_WAITING", 10)
    stream = Stuck()
    with logging_to(stream) as log:
        log.hear(DRAINING)
        assert stream.reached.wait(30)
        for number in range(25):
            log.hear(NodeDraining(at=number, running=number))
        assert len(log._waiting) == 10
        stream.let.set()
    said = lines(stream.getvalue())
    assert [line["event"] for line in said] == ["NodeDraining"] * 11 + ["log"]
    assert said[-1]["message"] == "15 lines were left out: more came than could be written"


def test_o3_a_closed_terminal_stops_nothing(tmp_path: Path) -> None:
    stream, path = io.StringIO(), tmp_path / "log"
    stream.close()
    with logging_to(stream, file=str(path)) as log:
        log.hear(AWAY)
    assert len(lines(path.read_text())) == 1


def test_o2_a_file_that_cannot_be_written_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"log\.file.*No such file or directory"):
        open_log(LogSettings(file=str(tmp_path / "none" / "log")))


class _Untellable:
    """What a library may say that cannot be told."""

    def __str__(self) -> str:
        raise RuntimeError("made up")

    __repr__ = __str__


def test_o3_what_cannot_be_told_does_not_end_the_log() -> None:
    stream = io.StringIO()
    with logging_to(stream) as log:
        for message, *filled in (
            (_Untellable(),),
            ("about %s", _Untellable()),
            ("%d %d", 1),
            ("and on",),
        ):
            warning = logging.WARNING
            log.hear_record(
                logging.LogRecord("some.library", warning, "x.py", 1, message, tuple(filled), None)
            )
    messages = [line["message"] for line in lines(stream.getvalue())]
    assert messages[1:] == ["about %s", "%d %d", "and on"]
    assert "_Untellable object" in str(messages[0])


def test_o3_another_error_in_the_same_words_is_news() -> None:
    stream = io.StringIO()
    with logging_to(stream):
        said = logging.getLogger("some.library")
        for number in (1, 2, 1):
            said.warning("order %d failed", number)
        for error in (ValueError("one"), KeyError("two")):
            for _ in range(2):
                try:
                    raise error
                except (ValueError, KeyError):
                    said.exception("a request failed")
    found = [
        str(line.get("trace", line["message"])).split()[-1] for line in lines(stream.getvalue())
    ]
    assert found == ["failed", "failed", "one", "'two'"]


def test_o3_a_folder_of_nobody_is_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match=r"log\.file"):
        open_log(LogSettings(file="~nobody-of-this-name/log"))
