"""The façade's life: before, between and after; and the errors that `send` raises."""

import asyncio

import pytest

import headway
from headway import (
    Draining,
    Handle,
    Headway,
    HeadwayError,
    InvalidInput,
    LaneCleared,
    MessageStale,
    NotFound,
    NotRunning,
    QueueDropped,
    QueueFull,
    Refused,
    RunEnded,
    SessionBusy,
    Turn,
    Unavailable,
)
from headway.testing import run_virtual, virtual_time
from tests.unit.runtime.worlds import CHAT, Recorder, ending, moment, now_s, with_agents


@virtual_time
async def test_nothing_works_before_the_start_and_the_error_says_what_to_do() -> None:
    hw = with_agents(Recorder())
    for call in (
        lambda: hw.send("a", "x"),
        lambda: hw.submit("a", "x"),
        lambda: hw.stop("s"),
        lambda: hw.stop_all("s"),
        lambda: hw.command("s", "/stop"),
        lambda: hw.cancel("x"),
        hw.runs,
        lambda: hw.run("x"),
        lambda: hw.why("x"),
        hw.drain,
        hw.restart,
        lambda: hw.set_queue("s", cap=1),
    ):
        with pytest.raises(NotRunning, match="async with hw"):
            await call()
    for read in (hw.lanes, hw.sessions, hw.events):
        with pytest.raises(NotRunning):
            read()
    with pytest.raises(NotRunning):
        hw.set_lane("main", 1)
    await hw.close()


@virtual_time
async def test_closing_twice_and_starting_twice_is_harmless() -> None:
    hw = with_agents(Recorder())
    await hw.start()
    engine = hw.engine
    await hw.start()
    assert hw.engine is engine
    assert await hw.send("a", "x") == "re: x"
    await asyncio.gather(hw.close(), hw.close())
    await hw.close()


@virtual_time
async def test_after_the_close_nothing_works_but_what_is_known_can_be_read() -> None:
    async with with_agents(Recorder()) as hw:
        handle = await hw.submit("a", "x")
    assert (await handle.wait()).ok
    assert str(await handle.cancel()) == "nothing to stop"
    with pytest.raises(NotRunning):
        await hw.send("a", "y")


@virtual_time
async def test_closing_lets_running_work_finish() -> None:
    async with with_agents(Recorder(takes=20)) as hw:
        handle = await hw.submit("a", "x")
        await moment()
    assert await handle.reply() == "re: x"
    assert now_s() == pytest.approx(20)


@virtual_time
async def test_an_error_in_the_block_cuts_at_once_and_is_not_hidden() -> None:
    handles: list[Handle] = []

    async def fail() -> None:
        async with with_agents(Recorder(takes=20)) as hw:
            handles.append(await hw.submit("a", "x"))
            await moment()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert now_s() == 0
    assert ending(handles[0].outcome) == "cancelled/draining"


@virtual_time
async def test_every_waiting_caller_is_told_when_headway_closes() -> None:
    hw = with_agents(Recorder(takes=100))
    await hw.start()
    running = await hw.submit("a", "running", session="s")
    waiting = await hw.submit("a", "waiting", session="s")
    buffered = await hw.submit("a", "buffered", session="t", debounce="1h")
    later = await hw.submit("a", "later", due="1d")
    told = asyncio.gather(*(handle.wait() for handle in (running, waiting, buffered, later)))
    await moment()
    await hw.close("5s")
    assert {ending(outcome) for outcome in await told} == {"cancelled/draining"}


def test_one_headway_can_be_used_in_a_second_loop() -> None:
    hw = with_agents(Recorder(takes=0.01))
    hooks: list[str] = []
    hw.before(lambda turn: hooks.append(turn.text))

    async def once(text: str) -> str:
        async with hw:
            hw.set_lane("main", 5)
            return await hw.send("a", text, session="s")

    assert run_virtual(once("first")) == "re: first"
    assert run_virtual(once("second")) == "re: second"
    assert asyncio.run(asyncio.wait_for(once("third"), 30)) == "re: third"
    assert hooks == ["first", "second", "third"]


def test_run_uses_whatever_loop_is_there() -> None:
    async def main() -> str:
        async with with_agents(Recorder(takes=0)) as hw:
            return await hw.send("a", "x")

    assert headway.run(main()) == "re: x"


@virtual_time
async def test_agents_can_be_added_while_running_but_not_twice() -> None:
    async with Headway() as hw:
        hw.agent("late")(Recorder(takes=0))
        assert await hw.send("late", "x") == "re: x"
        with pytest.raises(InvalidInput, match="not taken"):
            hw.agent("late")(Recorder())


@virtual_time
async def test_the_decorator_gives_the_function_back() -> None:
    hw = Headway()

    async def agent(turn: Turn) -> str:
        return "x"

    assert hw.agent("a")(agent) is agent
    assert hw.before(agent) is agent
    assert hw.token_estimate(agent) is agent  # type: ignore[type-var]
    assert hw.on_wait(agent) is agent  # type: ignore[type-var]


async def _queue_full(hw: Headway) -> None:
    await hw.submit("a", "x", session="s")
    await hw.submit("a", "y", session="s")
    await hw.send("a", "z", session="s", cap=1, drop="new")


async def _queue_dropped(hw: Headway) -> None:
    await hw.submit("a", "x", session="s")
    async with asyncio.TaskGroup() as group:
        dropped = group.create_task(_caught(hw.send("a", "y", session="s")))
        await moment()
        await hw.submit("a", "z", session="s", cap=1)
    raise dropped.result()


async def _stale(hw: Headway) -> None:
    await hw.stop_all("s", message_id="5", route=CHAT)
    await hw.send("a", "x", session="s", message_id="4", route=CHAT)


async def _draining(hw: Headway) -> None:
    await hw.drain()
    await hw.send("a", "x")


async def _lane_cleared(hw: Headway) -> None:
    hw.set_lane("main", 0)
    async with asyncio.TaskGroup() as group:
        cleared = group.create_task(_caught(hw.send("a", "y")))
        await moment()
        hw.clear_lane("main")
    raise cleared.result()


async def _busy(hw: Headway) -> None:
    await hw.submit("a", "x", session="s")
    await hw.send("a", "y", session="s", mode="reject")


async def _caught(work: "asyncio.Future[str] | object") -> RunEnded:
    try:
        await work  # type: ignore[misc]
    except RunEnded as error:
        return error
    raise AssertionError("it was not refused")


REFUSALS = {
    QueueFull: (_queue_full, Refused),
    QueueDropped: (_queue_dropped, Refused),
    MessageStale: (_stale, Refused),
    Draining: (_draining, Unavailable),
    LaneCleared: (_lane_cleared, Refused),
    SessionBusy: (_busy, Refused),
}


@pytest.mark.parametrize("kind", list(REFUSALS), ids=lambda kind: kind.__name__)
def test_each_refusal_is_a_type_of_its_own(kind: type[RunEnded]) -> None:
    scenario, family = REFUSALS[kind]

    @virtual_time
    async def main() -> None:
        async with with_agents(Recorder(takes=1)) as hw:
            with pytest.raises(RunEnded) as refusal:
                await scenario(hw)
            assert type(refusal.value) is kind
            assert isinstance(refusal.value, family)
            assert isinstance(refusal.value, HeadwayError)
            assert refusal.value.code == refusal.value.outcome.reason
            assert refusal.value.run_id

    main()


@virtual_time
async def test_reading_what_is_not_there_says_so() -> None:
    async with with_agents(Recorder()) as hw:
        for call in (hw.run, hw.why, hw.cancel):
            with pytest.raises(NotFound, match="nope") as missing:
                await call("nope")
            assert missing.value.run_id == "nope"


@virtual_time
async def test_runs_are_listed_newest_first_a_page_at_a_time() -> None:
    async with with_agents(Recorder(takes=0), Recorder(takes=0)) as hw:
        ids = [(await hw.submit("a", str(n), session=f"s{n % 2}")).id for n in range(7)]
        other = await hw.submit("b", "other")
        await other.wait()
        await asyncio.sleep(1)
        listed: list[str] = []
        cursor: str | None = None
        for _ in range(3):
            page = await hw.runs(agent="a", limit=3, cursor=cursor)
            listed += [view.id for view in page.runs]
            cursor = page.cursor
        assert listed == ids[::-1]
        assert cursor is None
        assert [view.id for view in (await hw.runs(session="s1")).runs] == ids[5::-2]
        assert len((await hw.runs(state="done")).runs) == 8
        assert (await hw.runs(state="failed")).runs == ()


@virtual_time
async def test_reading_changes_nothing() -> None:
    recorder = Recorder()
    async with with_agents(recorder) as hw:
        *_, last = [await hw.submit("a", text, session="s") for text in ("x", "y")]
        await moment()
        for _ in range(50):
            await hw.why(last)
            await hw.runs()
            hw.lanes()
            hw.sessions()
        await last.wait()
        assert recorder.started == ["x", "y"]
        assert hw.lanes()["main"].started == 2


@virtual_time
async def test_sessions_show_what_runs_waits_and_debounces() -> None:
    async with with_agents(Recorder()) as hw:
        running = await hw.submit("a", "x", session="s")
        waiting = await hw.submit("a", "y", session="s")
        buffered = await hw.submit("a", "z", session="s", debounce="1s")
        await moment()
        view = hw.sessions()["s"]
        assert (view.running, view.waiting, view.debouncing) == (
            (running.id,),
            (waiting.id,),
            (buffered.id,),
        )


@virtual_time
async def test_x1_why_names_the_run_that_is_in_the_way() -> None:
    async with with_agents(Recorder()) as hw:
        running = await hw.submit("a", "x", session="s")
        waiting = await hw.submit("a", "y", session="s")
        behind = await hw.submit("a", "z", session="s")
        await moment()
        assert ((await hw.why(waiting)).rule, (await hw.why(waiting)).by) == (
            "session_busy",
            running.id,
        )
        assert ((await hw.why(behind)).rule, (await hw.why(behind)).place) == ("session_order", 1)
        assert (await hw.why(running)).rule is None
        await behind.wait()
        assert "nothing holds it" in str(await hw.why(behind))
