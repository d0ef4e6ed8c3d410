"""Workers as they are written: nothing lost, and nodes of two versions side by side (D-10)."""

import msgspec
import pytest

from headway.model.errors import InvalidInput
from headway.model.words import WorkerKind, WorkerState
from headway.model.worker import Beat, Snapshot, Worker
from headway.store.worker_codec import (
    decode_beat,
    decode_snapshot,
    decode_worker,
    encode_beat,
    encode_snapshot,
    encode_worker,
    read_snapshot_cursor,
    read_worker_cursor,
    snapshot_cursor,
    worker_cursor,
)
from tests.contract.workers_contract import SNAPSHOT, a_worker

NASTY = ("", "\x00", "\u0000 \ud83d", '"\\', "\N{GRINNING FACE}", "\x1b[31m")


@pytest.mark.parametrize("line", NASTY)
def test_d8_what_a_worker_wrote_is_kept_whatever_it_is(line: str) -> None:
    worker = a_worker(lines=(line, line), pane=line, kind=WorkerKind.TMUX, exit_code=-15)
    text = encode_worker(worker)
    assert "\x00" not in text
    assert text.encode()
    assert decode_worker(text) == worker
    assert decode_beat("r-1.1", 7, encode_beat(worker)) == Beat(
        "r-1.1", 7, WorkerState.ALIVE, (line, line)
    )


def test_d8_only_what_was_said_is_written() -> None:
    written = msgspec.json.decode(encode_worker(a_worker()))
    assert set(written) == set(Worker.__struct_fields__) - {
        "missed",
        "lines",
        "pane",
        "adopted",
        "exit_code",
    }
    assert encode_beat(a_worker()) == '{"state":"alive"}'


def test_d10_what_a_newer_version_adds_is_no_trouble() -> None:
    worker = a_worker()
    text = encode_worker(worker).replace("{", '{"colour":"red",', 1)
    assert decode_worker(text) == worker
    text = encode_snapshot(SNAPSHOT).replace("{", '{"disk":1,', 1)
    assert decode_snapshot(text) == SNAPSHOT


def test_d10_words_that_only_a_newer_version_knows_are_left_out() -> None:
    for known, unknown in (('"command"', '"container"'), ('"alive"', '"dreaming"')):
        assert decode_worker(encode_worker(a_worker()).replace(known, unknown)) is None
    assert decode_beat("r-1.1", 7, encode_beat(a_worker()).replace("alive", "dreaming")) is None


def test_d8_a_cursor_is_read_as_it_was_written() -> None:
    assert read_worker_cursor(worker_cursor(7, 'r-"1".1')) == (7, 'r-"1".1')
    assert read_snapshot_cursor(snapshot_cursor(7, 3)) == (7, 3)


@pytest.mark.parametrize("cursor", ["", "{}", "[1]", '[1,"a"', '["a",1]', f'[{1 << 63},"a"]'])
def test_d8_a_cursor_that_is_none_is_refused(cursor: str) -> None:
    for read in (read_worker_cursor, read_snapshot_cursor):
        with pytest.raises(InvalidInput, match="cursor"):
            read(cursor)


def test_d8_a_snapshot_is_read_as_it_was_written() -> None:
    bare = Snapshot("one", 1, 0, 0.0, 0, 0, 0, 0.0, 0)
    for snapshot in (bare, SNAPSHOT):
        assert decode_snapshot(encode_snapshot(snapshot)) == snapshot
