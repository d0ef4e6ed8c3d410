"""The live output: all of it while anybody could follow, else the latest, in bounds (W-1)."""

import asyncio

from headway.runners.live import A_SECOND, AT_ONCE, HELD, LiveOutput, tail
from headway.testing import run_virtual


def test_w1_what_comes_slowly_is_streamed_at_once() -> None:
    async def main() -> None:
        said: list[str] = []
        live = LiveOutput(said.append)
        live.take(b"one")
        assert said == ["one"]
        live.take("€".encode()[:2])
        assert said == ["one"]
        live.take("€".encode()[2:])
        assert said == ["one", "€"]
        live.take(b"\xff")
        live.take(b"\xe2")
        live.close()
        assert said == ["one", "€", "\ufffd", "\ufffd"]

    run_virtual(main())


def test_w1_a_flood_is_cut_and_says_so_and_its_end_is_shown() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        said: list[str] = []
        live = LiveOutput(said.append)
        for _ in range(1_000):
            live.take(b"." * HELD)
        live.take(b"the end")
        assert sum(map(len, said)) == AT_ONCE
        at = loop.time()
        await asyncio.sleep(HELD / A_SECOND + 0.01)
        assert loop.time() - at < 1
        text = "".join(said)
        left_out = 1_000 * HELD + len("the end") - AT_ONCE - HELD
        assert text.endswith("the end")
        assert f"\n[{left_out:,} bytes are not shown]\n" in text
        assert max(map(len, said)) <= 4096

    run_virtual(main())


def test_w1_hours_of_output_are_streamed_at_a_rate() -> None:
    async def main() -> None:
        said: list[int] = []
        live = LiveOutput(lambda text: said.append(len(text)))
        for _ in range(600):
            live.take(b"x" * 4 * A_SECOND)
            await asyncio.sleep(1)
        live.close()
        assert sum(said) <= AT_ONCE + 601 * (A_SECOND + 100)
        assert sum(said) >= 600 * HELD, "something is always to be seen"

    run_virtual(main())


def test_w1_what_was_lost_before_is_told_with_what_comes_next() -> None:
    async def main() -> None:
        said: list[str] = []
        live = LiveOutput(said.append)
        live.skip(0)
        live.take(b"a")
        live.skip(1_234)
        live.take(b"b")
        live.close()
        assert "".join(said) == "a\n[1,234 bytes are not shown]\nb"

    run_virtual(main())


def test_w1_nothing_waits_once_it_is_closed() -> None:
    async def main() -> None:
        said: list[str] = []
        live = LiveOutput(said.append)
        live.take(b"x" * (AT_ONCE + 1))
        live.close()
        count = len(said)
        assert said[-1].endswith("x")
        await asyncio.sleep(10)
        assert len(said) == count

    run_virtual(main())


def test_w1_a_tail_is_text_without_its_last_line_ends() -> None:
    assert tail(b"a\r\nb\r\n\n", 0) == "a\r\nb"
    assert tail("€uro".encode()[1:], 1) == "uro"
    assert tail(b"\xff", 0) == "\ufffd"
