"""Answers leave in one piece, in order, and none of it is lost at the end."""

import asyncio
from collections.abc import Callable

import pytest

from headway.cli.serve.writing import Gathering


class Notes(asyncio.Transport):
    """A transport that writes down what it is told."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1)})
        self.told: list[object] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.told.append(bytes(data))

    def write_eof(self) -> None:
        self.told.append("eof")

    def close(self) -> None:
        self.told.append("close")

    def abort(self) -> None:
        self.told.append("abort")


def after(use: Callable[[Gathering], None]) -> list[object]:
    """What the transport was told, once the loop has turned."""
    notes = Notes()

    async def main() -> None:
        use(Gathering(notes, asyncio.get_running_loop()))
        await asyncio.sleep(0)

    asyncio.run(main())
    return notes.told


def test_what_is_written_in_one_turn_is_sent_at_once() -> None:
    def use(out: Gathering) -> None:
        out.write(b"head ")
        out.write(b"body")

    assert after(use) == [b"head body"]


def test_a_later_turn_sends_anew() -> None:
    notes = Notes()

    async def main() -> None:
        out = Gathering(notes, asyncio.get_running_loop())
        for piece in (b"one", b"two"):
            out.write(piece)
            await asyncio.sleep(0)

    asyncio.run(main())
    assert notes.told == [b"one", b"two"]


@pytest.mark.parametrize(
    ("end", "told"),
    [
        (Gathering.close, [b"last words", "close"]),
        (Gathering.write_eof, [b"last words", "eof"]),
        (Gathering.abort, ["abort"]),
    ],
)
def test_an_end_comes_after_what_was_written(
    end: Callable[[Gathering], None], told: list[object]
) -> None:
    def use(out: Gathering) -> None:
        out.write(b"last words")
        end(out)

    assert after(use) == told


def test_who_speaks_something_else_from_now_on_gets_the_transport_itself() -> None:
    def use(out: Gathering) -> None:
        out.write(b"before")
        out.plain.write(b"after")

    assert after(use) == [b"before", b"after"]


def test_what_it_does_not_know_is_the_transports() -> None:
    def use(out: Gathering) -> None:
        assert out.get_extra_info("peername") == ("127.0.0.1", 1)  # type: ignore[operator]

    assert after(use) == []
