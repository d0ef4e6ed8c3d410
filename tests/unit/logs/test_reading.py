"""Reading a log again (O-3): over its files, and on while it is rotated."""

from pathlib import Path

import pytest

from headway.logs import Tail, line_matches, newest_lines
from headway.logs.files import RotatedFile
from headway.logs.reading import Line
from headway.model.words import LogLevel


def lines(*numbers: int) -> list[bytes]:
    return [f'{{"number":{number}}}\n'.encode() for number in numbers]


def numbers(found: list[Line]) -> list[object]:
    return [line["number"] for line in found]


def everything(line: Line) -> bool:
    return True


def test_o3_the_newest_lines_come_from_all_files_in_order(tmp_path: Path) -> None:
    path = tmp_path / "log"
    file = RotatedFile(path, max_bytes=30, keep=5)
    file.write(lines(*range(8)))
    file.close()
    assert numbers(newest_lines(path, 100, everything)) == list(range(8))
    assert numbers(newest_lines(path, 3, everything)) == [5, 6, 7]
    assert numbers(newest_lines(path, 2, lambda line: line["number"] in {1, 2, 6})) == [2, 6]
    assert newest_lines(path, 0, everything) == []


def test_o3_a_torn_line_hides_no_other(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b'{"number":1}\n{"numb\n[3]\nnoise\n\xff\n{"number":2}\n{"number":')
    assert numbers(newest_lines(path, 10, everything)) == [1, 2]


def test_o3_a_tail_follows_over_rotations_and_waits_for_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "log"
    file = RotatedFile(path, max_bytes=30, keep=5)
    file.write(lines(0))
    with Tail(path) as tail:
        assert list(tail.lines()) == []
        file.write(lines(1))
        assert numbers(list(tail.lines())) == [1]
        file.write(lines(2, 3))
        assert numbers(list(tail.lines())) == [2, 3]
        with path.open("ab") as other:
            other.write(b'{"num')
            other.flush()
            assert list(tail.lines()) == []
            other.write(b'ber":4}\n')
        assert numbers(list(tail.lines())) == [4]
    file.close()


def test_o3_each_line_is_either_old_or_new(tmp_path: Path) -> None:
    """What is written between opening the tail and reading what was there is not shown twice."""
    path = tmp_path / "log"
    file = RotatedFile(path, max_bytes=30, keep=5)
    file.write(lines(0, 1))
    with Tail(path) as tail:
        file.write(lines(2, 3, 4))
        assert numbers(newest_lines(path, 9, everything, tail)) == [0, 1]
        assert numbers(list(tail.lines())) == [2, 3, 4]
    file.close()


def test_o3_a_tail_waits_for_a_file_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with Tail(path) as tail:
        assert list(tail.lines()) == []
        path.write_bytes(lines(1)[0])
        assert numbers(list(tail.lines())) == [1]


LINE: Line = {"level": "info", "event": "RunsMerged", "runId": "a", "session": "s", "parts": ["b"]}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, True),
        ({"level": LogLevel.INFO}, True),
        ({"level": LogLevel.WARNING}, False),
        ({"event": "RunsMerged"}, True),
        ({"event": "RunStarted"}, False),
        ({"run": "a"}, True),
        ({"run": "b"}, True),
        ({"run": "c"}, False),
        ({"session": "s"}, True),
        ({"session": "t"}, False),
        ({"session": "s", "run": "c"}, False),
    ],
)
def test_o3_lines_are_found_by_what_they_are_about(asked: dict[str, str], expected: bool) -> None:
    assert line_matches(LINE, **asked) is expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "odd", [b'{"text":"\xff"}', b'{"a":' + b"[" * 5_000, b'{"level":[]}', b'{"level":{}}', b"5"]
)
def test_o3_what_others_wrote_into_it_hides_no_line(tmp_path: Path, odd: bytes) -> None:
    path = tmp_path / "log"
    path.write_bytes(odd + b"\n" + lines(1)[0])
    found = newest_lines(path, 10, line_matches)
    assert found[-1] == {"number": 1}
