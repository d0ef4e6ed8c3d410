"""Inline drives a Headway from plain code: no await, no waiting, the same result each time."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from headway import Headway, InvalidInput, NotRunning, Outcome, Route, RunFailed, State, Turn
from headway.model.events import RunFinished, RunStarted, RunSubmitted
from headway.model.words import Cut, Reason, Rule
from headway.testing import Inline, TimeStandsStill, virtual_time


def _headway(seconds: float = 10) -> Headway:
    hw = Headway()

    @hw.agent("echo")
    async def echo(turn: Turn) -> str:
        await asyncio.sleep(seconds)
        return turn.text.upper()

    @hw.agent("broken")
    async def broken(turn: Turn) -> str:
        raise ValueError(turn.text)

    return hw


def test_send_answers_and_time_passes() -> None:
    with Inline(_headway(seconds=3600)) as inline:
        began_at = inline.now
        assert inline.send("echo", "hi", session="x") == "HI"
        assert inline.now - began_at == timedelta(hours=1)


def test_send_raises_what_headway_raises() -> None:
    with Inline(_headway()) as inline, pytest.raises(RunFailed, match="no luck"):
        inline.send("broken", "no luck")


def test_submit_starts_the_run_and_lets_no_time_pass() -> None:
    with Inline(_headway()) as inline:
        began_at = inline.now
        handle = inline.submit("echo", "hi", session="x")
        assert inline.now == began_at
        assert inline.state(handle) is State.RUNNING
        assert inline.lanes()["main"].running == 1
        assert inline.sessions()["x"].running == (handle.id,)
        assert inline.outcome(handle).text == "HI"


def test_advance_lets_happen_what_is_due_and_no_more() -> None:
    with Inline(_headway(seconds=10)) as inline:
        first = inline.submit("echo", "1", session="x")
        second = inline.submit("echo", "2", session="x")
        inline.advance("10s")
        assert inline.state(first) is State.DONE
        assert inline.state(second) is State.RUNNING
        inline.advance(timedelta(seconds=9))
        assert inline.state(second) is State.RUNNING
        inline.advance("1s")
        assert inline.state(second) is State.DONE


def test_run_until_idle_lets_all_come_to_its_end() -> None:
    with Inline(_headway(seconds=600)) as inline:
        handles = [inline.submit("echo", str(number), session="x") for number in range(3)]
        inline.run_until_idle()
        assert [handle.outcome and handle.outcome.text for handle in handles] == ["0", "1", "2"]


def test_run_until_idle_fails_loudly_if_a_run_can_never_end() -> None:
    hw = _headway()
    with Inline(hw) as inline:
        hw.set_lane("main", 0)
        handle = inline.submit("echo", "hi", session="x")
        with pytest.raises(TimeStandsStill):
            inline.run_until_idle()
        hw.set_lane("main", 1)
        assert inline.outcome(handle).text == "HI"


def test_merged_messages_have_one_outcome() -> None:
    route = Route("telegram", peer="42")
    with Inline(_headway(seconds=1)) as inline:
        first = inline.submit("echo", "a", route=route)
        second = inline.submit("echo", "b", route=route)
        assert inline.outcome(first) == inline.outcome(second)
        assert inline.outcome(first).text == "A\nB"


def test_stop_why_command_and_views() -> None:
    with Inline(_headway()) as inline:
        first = inline.submit("echo", "1", session="x")
        second = inline.submit("echo", "2", session="x")
        third = inline.submit("echo", "3", session="x")
        why = inline.why(second)
        assert (why.rule, why.by) == (Rule.SESSION_BUSY, first.id)
        assert str(inline.stop("x")) == "1 running stopped"
        assert inline.outcome(first) == Outcome(State.CANCELLED, Reason.STOPPED)
        assert inline.run(second).state is State.RUNNING
        assert str(inline.cancel(third)) == "1 waiting stopped"
        assert inline.command("x", "/stopall") == "1 running stopped"
        assert inline.command("x", "hello") is None
        assert [view.id for view in inline.runs(session="x").runs] == [
            third.id,
            second.id,
            first.id,
        ]
        assert inline.stop_all("x").nothing


def test_set_queue_gives_a_session_its_own_options() -> None:
    with Inline(_headway()) as inline:
        inline.set_queue("x", mode="interrupt")
        first = inline.submit("echo", "1", session="x")
        second = inline.submit("echo", "2", session="x")
        assert inline.outcome(first).reason is Reason.SUPERSEDED
        assert inline.outcome(second).text == "2"


def test_events_tell_the_whole_story() -> None:
    with Inline(_headway()) as inline:
        handle = inline.submit("echo", "hi", session="x")
        inline.run_until_idle()
        told = [event for event in inline.events if getattr(event, "run_id", "") == handle.id]
        assert [type(event) for event in told] == [RunSubmitted, RunStarted, RunFinished]


def test_time_begins_where_it_is_told_to() -> None:
    new_year = datetime(2030, 1, 1, tzinfo=UTC)
    with Inline(_headway(), starts_at=new_year) as inline:
        assert inline.now == new_year
        inline.advance("90m")
        assert inline.now == new_year + timedelta(minutes=90)


def test_leaving_drains_and_nothing_works_afterwards() -> None:
    hw = _headway(seconds=5)
    with Inline(hw) as inline:
        handle = inline.submit("echo", "hi")
    assert handle.outcome is not None
    assert handle.outcome.text == "HI"
    with pytest.raises(NotRunning):
        _ = hw.engine
    with pytest.raises(InvalidInput, match="with"):
        inline.advance("1s")


def test_an_error_in_the_test_leaves_at_once_and_is_not_hidden() -> None:
    seen: list[Cut | None] = []
    hw = Headway()

    @hw.agent("slow")
    async def slow(turn: Turn) -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            seen.append(turn.cut)

    def test() -> None:
        with Inline(hw) as inline:
            inline.submit("slow")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        test()
    assert seen == [Cut.DRAINED]


def test_an_agent_that_ignores_its_cancellation_does_not_keep_it_from_leaving() -> None:
    hw = Headway()

    @hw.agent("deaf")
    async def deaf(turn: Turn) -> None:
        while True:
            try:
                await asyncio.sleep(1)
            except asyncio.CancelledError:
                continue

    with Inline(hw) as inline:
        handle = inline.submit("deaf", session="x")
        inline.stop("x")
        inline.advance("10s")
        assert handle.outcome == Outcome(State.CANCELLED, Reason.STOPPED)


def test_the_same_test_twice_gives_the_same_instants() -> None:
    """Also those of retries, which are spread by chance elsewhere (C-9)."""

    def story() -> list[tuple[str, int]]:
        with Inline(_headway(seconds=7)) as inline:
            for number in range(3):
                inline.submit("echo", str(number), session="x")
                inline.submit("broken", session="y", retries=2)
                inline.advance("3s")
            inline.run_until_idle()
            return [(type(event).__name__, event.at) for event in inline.events]

    assert story() == story()


def test_plain_functions_work_too() -> None:
    hw = Headway()

    @hw.agent("plain")
    def plain(turn: Turn) -> str:
        return turn.text[::-1]

    with Inline(hw) as inline:
        handle = inline.submit("plain", "abc")
        assert handle.outcome is not None
        assert handle.outcome.text == "cba"


@virtual_time
async def test_it_is_refused_in_async_code() -> None:
    inline = Inline(_headway())
    with pytest.raises(InvalidInput, match="plain code"):
        inline.__enter__()
    inline._loop.close()
