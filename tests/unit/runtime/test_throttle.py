"""S-2: a session whose context is nearly full runs one at a time."""

import asyncio
import time

import pytest

from headway import Headway, Settings
from headway.model.events import CallbackFailed
from headway.model.time import MILLISECOND
from headway.testing import virtual_time
from tests.unit.runtime.worlds import Recorder, each, endings, hear, moment, only, with_agents


def _group(recorder: Recorder, answer: object) -> Headway:
    """An agent with an estimate that always gives this answer, or raises it."""
    hw = with_agents(recorder)

    @hw.token_estimate
    async def estimate(session: str) -> object:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return hw


@pytest.mark.parametrize(
    ("tokens", "window", "most"),
    [
        (59_999, 100_000, 3),
        (60_000, 100_000, 1),
        (60_001, 100_000, 1),
        (3, 5, 1),
        (76_800, 128_000, 1),
        (76_799, 128_000, 3),
        (0, 100_000, 3),
        (200_000, 100_000, 1),
    ],
)
def test_s2_at_60_percent_of_the_window_a_session_runs_one_at_a_time(
    tokens: int, window: int, most: int
) -> None:
    @virtual_time
    async def main() -> None:
        recorder = Recorder()
        async with _group(recorder, (tokens, window)) as hw:
            handles = [
                await hw.submit("a", text, session="g", max_concurrent=3) for text in each(6)
            ]
            await endings(*handles)
            assert recorder.most == most
            assert recorder.started == list(each(6))

    main()


@virtual_time
async def test_s2_three_running_of_three_are_untouched_when_the_estimate_reaches_exactly_60() -> (
    None
):
    recorder = Recorder(takes=10, spans={"m1": 1, "m2": 2, "m3": 3})
    hw = with_agents(recorder)
    tokens = [10]

    @hw.token_estimate
    def estimate(session: str) -> tuple[int, int]:
        return tokens[0], 100

    async with hw:
        handles = [await hw.submit("a", text, session="g", max_concurrent=3) for text in each(5)]
        await asyncio.sleep(0.5)
        assert recorder.live == 3
        tokens[0] = 60
        await asyncio.sleep(2)
        assert recorder.cancelled == []
        assert recorder.started == ["m1", "m2", "m3"], (
            "two have ended, and still nobody joins the third"
        )
        assert str(await hw.why(handles[3])).startswith("session g has little context left")
        await endings(*handles)
        assert recorder.started_at[3:] == pytest.approx([3, 13]), "then one at a time"


@virtual_time
async def test_s2_when_there_is_room_again_more_start() -> None:
    recorder = Recorder()
    hw = with_agents(recorder)
    tokens = [90]

    @hw.token_estimate
    async def estimate(session: str) -> tuple[int, int]:
        return tokens[0], 100

    async with hw:
        handles = [await hw.submit("a", text, session="g", max_concurrent=3) for text in each(5)]
        await asyncio.sleep(0.5)
        assert recorder.live == 1
        tokens[0] = 10
        await asyncio.sleep(1)
        assert recorder.live == 3
        await endings(*handles)


@virtual_time
async def test_s2_a_session_of_width_1_is_not_asked_about() -> None:
    asked: list[str] = []
    hw = with_agents(Recorder())
    hw.token_estimate(asked.append)
    async with hw:
        handles = [await hw.submit("a", text, session="s") for text in each(3)]
        await endings(*handles)
        assert asked == []


NONSENSE: list[object] = [
    None,
    "full",
    70,
    (),
    (1, 2, 3),
    ("many", "few"),
    (None, None),
    (float("nan"), 100),
    (70, float("inf")),
    (70, 0),
    (70, -100),
    {"tokens": 70},
    object(),
]


@pytest.mark.parametrize("answer", NONSENSE, ids=lambda answer: repr(answer).split(" at ")[0])
def test_s2_an_estimate_that_answers_nonsense_stops_nothing(answer: object) -> None:
    @virtual_time
    async def main() -> None:
        recorder = Recorder()
        async with _group(recorder, answer) as hw:
            handles = [
                await hw.submit("a", text, session="g", max_concurrent=3) for text in each(3)
            ]
            await asyncio.sleep(0.9)
            assert recorder.live == 3
            assert await endings(*handles) == ["done"] * 3

    main()


@virtual_time
async def test_s2_an_estimate_that_raises_stops_nothing_and_is_heard_of() -> None:
    recorder = Recorder()
    async with _group(recorder, ValueError("no idea")) as hw:
        heard = hear(hw)
        handles = [await hw.submit("a", text, session="g", max_concurrent=2) for text in each(2)]
        await moment()
        assert recorder.live == 2
        await endings(*handles)
        failed = only(heard, CallbackFailed)
        assert [event.callback for event in failed] == ["token_estimate"]
        assert "no idea" in failed[0].error


@virtual_time
async def test_s2_a_slow_estimate_delays_a_start_by_no_more_than_its_bound() -> None:
    recorder = Recorder(takes=5)
    hw = with_agents(recorder)

    @hw.token_estimate
    async def estimate(session: str) -> tuple[int, int]:
        await asyncio.sleep(1000)
        return 99, 100

    async with hw:
        heard = hear(hw)
        handles = [await hw.submit("a", text, session="g", max_concurrent=2) for text in each(2)]
        other = await hw.submit("a", "other", session="elsewhere")
        await endings(*handles, other)
        assert sorted(recorder.started_at) == pytest.approx([0, 0, 0.25])
        assert only(heard, CallbackFailed)


def test_s2_a_plain_estimate_that_blocks_does_not_block_the_loop() -> None:
    """In real time, because a thread takes real time."""

    async def main() -> None:
        recorder = Recorder(takes=2)
        hw = Headway(settings=Settings(callback_within=20 * MILLISECOND))
        hw.agent("a")(recorder)

        @hw.token_estimate
        def estimate(session: str) -> tuple[int, int]:
            time.sleep(1)
            return 99, 100

        async with hw:
            handles = [
                await hw.submit("a", text, session="g", max_concurrent=2) for text in each(2)
            ]
            await endings(*handles)
            assert recorder.most == 2

    asyncio.run(main())
