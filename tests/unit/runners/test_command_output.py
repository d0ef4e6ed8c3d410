"""What commands write: as text, streamed and kept within bounds (W-1)."""

import asyncio
import tracemalloc
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

from headway import Reply
from headway.model.payload import Execute
from headway.runners.live import A_SECOND, AT_ONCE, HELD
from tests.unit.runners.commands import LOOPS, keeper_of, python, runner_at, turn_of
from tests.unit.runners.commands import play as play_on
from tests.unit.runners.turns import Ears

Play = Callable[[Coroutine[object, object, object]], object]
KEPT_BYTES = 64 * 1024
MB = 1_000_000


@pytest.fixture(params=LOOPS)
def play(request: pytest.FixtureRequest) -> Play:
    return lambda main: play_on(main, LOOPS[request.param])


class Counts(Ears):
    """Ears that only count."""

    most = total = 0

    def emit(self, ticket: int, text: str) -> None:
        self.total += len(text)
        self.most = max(self.most, len(text))


def test_w1_characters_and_broken_bytes_arrive_as_they_can(home: Path) -> None:
    """A character in two writes is one character; what is no UTF-8 is replaced, not refused."""
    program = (
        "import os, time; text = 'a€ü😀'.encode()\n"
        "for byte in text: os.write(1, bytes([byte])); time.sleep(0.002)\n"
        "os.write(1, b'\\xff|\\x00|\\xf0\\x9f')"
    )

    async def main() -> None:
        ears = Ears()
        reply = await runner_at(home).run(turn_of(python(program), ears))
        assert reply.text == "a€ü😀\ufffd|\x00|\ufffd"
        assert ears.heard == reply.text

    play_on(main())


def test_w1_the_tail_begins_with_a_whole_character(home: Path) -> None:
    async def main() -> None:
        for width in ("é", "€", "😀"):
            written = len(width.encode()) * 50_000 + 1
            program = f"import sys; sys.stdout.buffer.write({width!r}.encode() * 50_000 + b'.')"
            reply = await runner_at(home).run(turn_of(python(program)))
            assert set(reply.text) == {width, "."}
            assert KEPT_BYTES - 4 < len(reply.text.encode()) <= KEPT_BYTES
            assert reply.data == {"exit": 0, "dropped": written - KEPT_BYTES}

    play_on(main())


def test_w1_the_bound_can_be_set(home: Path) -> None:
    async def main() -> Reply:
        return await runner_at(home, output=10).run(turn_of(Execute(("seq", "100"))))

    assert play_on(main()) == Reply("98\n99\n100", data={"exit": 0, "dropped": 282})


def test_w1_100_mb_of_output_need_little_memory_and_little_time(play: Play, home: Path) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        ears = Counts()
        # It waits at the end, so that its keeper can be looked at.
        program = Execute(("sh", "-c", f"head -c {100 * MB} /dev/zero; sleep 0.3"))
        tracemalloc.start()
        began = loop.time()
        try:
            task = asyncio.create_task(runner_at(home).run(turn_of(program, ears)))
            keeper = await asyncio.to_thread(keeper_of, home)
            grown = 0
            while not task.done():
                grown = max(grown, rss(keeper))
                await asyncio.sleep(0.02)
            reply = await task
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        took = loop.time() - began
        assert reply.text == "\0" * KEPT_BYTES
        assert reply.data == {"exit": 0, "dropped": 100 * MB - KEPT_BYTES}
        assert peak < 5 * MB, f"{peak:,} bytes in the server"
        assert 0 < grown < 20 * MB, f"{grown:,} bytes in the keeper, Python itself included"
        assert ears.total <= AT_ONCE + A_SECOND * took + 2 * HELD, "the live output has its bound"
        assert 0 < ears.most <= 4096

    play(main())


def rss(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in status.splitlines() if "VmRSS" in line)


def test_w1_a_server_that_does_not_listen_makes_the_command_wait(
    home: Path, tmp_path: Path
) -> None:
    """What nobody has heard yet fills no memory: neither here nor in the keeper."""
    done = tmp_path / "done"

    async def main() -> None:
        ears = Ears()
        command = Execute(("sh", "-c", f"echo ready; head -c {20 * MB} /dev/zero; touch {done}"))
        task = asyncio.create_task(runner_at(home).run(turn_of(command, ears)))
        await ears.until("ready")
        keeper = keeper_of(home)
        # The loop stands still: nobody reads.
        for _ in range(50):
            assert rss(keeper) < 20 * MB
            Path("/proc/self/stat").read_bytes()
            _ = [Path(f"/proc/{keeper}/stat").read_bytes() for _ in range(50)]
        assert not done.exists()
        await task
        assert done.exists()

    play_on(main())
