"""Agents that are Python functions: async, plain, callable objects, and whatever they return."""

import asyncio
import functools
import threading
import time
from contextvars import ContextVar

import pytest

from headway import Attachment, Headway, Permanent, Reply, RunFailed, Settings, Turn
from headway.model.events import AttemptAbandoned, LateResult, OutputEmitted, TokensUsed
from headway.model.time import MILLISECOND, SECOND
from headway.testing import virtual_time
from tests.unit.runtime.worlds import Recorder, ending, hear, moment, only, with_agents

who: ContextVar[str] = ContextVar("who", default="nobody")


async def _reply(function: object, text: str = "x") -> Reply:
    hw = Headway()
    hw.agent("a")(function)  # type: ignore[type-var]
    async with hw:
        outcome = await (await hw.submit("a", text)).wait()
        assert outcome.ok, outcome
        assert outcome.reply is not None
        return outcome.reply


async def a_coroutine(turn: Turn) -> str:
    return f"async {turn.text}"


def a_plain_one(turn: Turn) -> str:
    return f"plain {turn.text}"


class AsyncObject:
    async def __call__(self, turn: Turn) -> str:
        return f"object {turn.text}"


class PlainObject:
    def __call__(self, turn: Turn) -> str:
        return f"plain object {turn.text}"

    def method(self, turn: Turn) -> str:
        return f"method {turn.text}"

    async def async_method(self, turn: Turn) -> str:
        return f"async method {turn.text}"


async def with_prefix(prefix: str, turn: Turn) -> str:
    return f"{prefix} {turn.text}"


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (a_coroutine, "async x"),
        (a_plain_one, "plain x"),
        (AsyncObject(), "object x"),
        (PlainObject(), "plain object x"),
        (PlainObject().method, "method x"),
        (PlainObject().async_method, "async method x"),
        (functools.partial(with_prefix, "partial"), "partial x"),
        (lambda turn: f"lambda {turn.text}", "lambda x"),
        (lambda turn: with_prefix("returned", turn), "returned x"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_w1_any_callable_can_be_an_agent(function: object, expected: str) -> None:
    assert virtual_time(_reply)(function).text == expected


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ("text", Reply("text")),
        ("", Reply("")),
        (None, Reply()),
        ({"a": [1, 2.5, None, True]}, Reply(data={"a": [1, 2.5, None, True]})),
        ([1, "two"], Reply(data=[1, "two"])),
        (42, Reply(data=42)),
        (False, Reply(data=False)),
        (
            Reply("text", (Attachment("a.png"),), {"k": 1}),
            Reply("text", (Attachment("a.png"),), {"k": 1}),
        ),
    ],
    ids=repr,
)
def test_w1_what_a_function_returns_is_its_reply(result: object, expected: Reply) -> None:
    async def agent(turn: Turn) -> object:
        return result

    assert virtual_time(_reply)(agent) == expected


class Unserialisable:
    pass


class Abort(BaseException):
    """Not an Exception, as the cancellations of some libraries are not."""


@pytest.mark.parametrize("result", [Unserialisable(), {"deep": [Unserialisable()]}, open, object])
def test_w1_a_result_that_json_cannot_hold_fails_the_run_and_says_so(result: object) -> None:
    @virtual_time
    async def main() -> None:
        hw = Headway()
        calls: list[int] = []

        @hw.agent("a")
        async def agent(turn: Turn) -> object:
            calls.append(turn.attempt)
            return result

        async with hw:
            with pytest.raises(RunFailed, match="must return text, a Reply, or data") as failure:
                await hw.send("a", retries=3)
            assert ending(failure.value.outcome) == "failed/error"
            assert calls == [1], "another try would return the same"

    main()


def test_w1_a_result_that_contains_itself_fails_the_run() -> None:
    @virtual_time
    async def main() -> None:
        hw = Headway()

        @hw.agent("a")
        async def agent(turn: Turn) -> object:
            circle: list[object] = []
            circle.append(circle)
            return circle

        async with hw:
            outcome = await (await hw.submit("a")).wait()
            assert ending(outcome) == "failed/error"
            hw.agent("b")(a_coroutine)
            assert await hw.send("b", "x") == "async x"

    main()


@pytest.mark.parametrize(
    "error",
    [
        ValueError("broken"),
        SystemExit(3),
        StopIteration("s"),
        StopAsyncIteration(),
        TimeoutError(),
        asyncio.CancelledError(),
        BaseExceptionGroup("several", [ValueError()]),
        Abort("enough"),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("plain", [False, True], ids=["async", "plain"])
def test_w1_whatever_an_agent_raises_is_its_runs_outcome(error: BaseException, plain: bool) -> None:
    @virtual_time
    async def main() -> None:
        hw = with_agents(Recorder(takes=0))

        async def raises(turn: Turn) -> str:
            raise error

        def raises_plainly(turn: Turn) -> str:
            raise error

        hw.agent("broken")(raises_plainly if plain else raises)
        async with hw:
            outcome = await (await hw.submit("broken", session="s")).wait()
            assert ending(outcome) == "failed/error"
            assert await hw.send("a", "x", session="s") == "re: x"

    main()


@virtual_time
async def test_c9_a_permanent_error_is_not_tried_again() -> None:
    hw = Headway()
    attempts: list[int] = []

    @hw.agent("a")
    async def agent(turn: Turn) -> str:
        attempts.append(turn.attempt)
        raise Permanent("no such page") if turn.text == "permanent" else ValueError("again")

    async with hw:
        for text, expected in (("permanent", [1]), ("other", [1, 2, 3])):
            attempts.clear()
            with pytest.raises(RunFailed):
                await hw.send("a", text, retries=2)
            assert attempts == expected


@virtual_time
async def test_a_long_error_is_cut() -> None:
    hw = Headway()

    @hw.agent("a")
    async def agent(turn: Turn) -> str:
        raise ValueError("x" * 100_000)

    async with hw:
        outcome = await (await hw.submit("a")).wait()
        assert len(outcome.error) <= 2_000


@virtual_time
async def test_a_plain_function_runs_beside_the_loop_in_a_thread_of_its_own() -> None:
    hw = Headway()
    threads: list[threading.Thread] = []

    @hw.agent("a")
    def agent(turn: Turn) -> str:
        threads.append(threading.current_thread())
        return "done"

    async with hw:
        await asyncio.gather(*(hw.send("a") for _ in range(3)))
        assert threading.main_thread() not in threads
        assert len(set(threads)) == 3
        assert all(thread.daemon for thread in threads)


@virtual_time
async def test_a_plain_function_can_emit_use_and_delegate_from_its_thread() -> None:
    hw = with_agents(Recorder(takes=0))

    @hw.agent("plain")
    def plain(turn: Turn) -> str:
        turn.emit("first")
        turn.usage(input=3)
        answer = turn.wait_for(turn.delegate("a", "from a thread"))
        turn.emit("second")
        return answer

    async with hw:
        heard = hear(hw)
        handle = await hw.submit("plain")
        pieces = [piece async for piece in handle.stream()]
        assert await handle.reply() == "re: from a thread"
        assert pieces == ["first", "second"]
        assert [event.text for event in only(heard, OutputEmitted)] == ["first", "second"]
        assert [event.tokens_in for event in only(heard, TokensUsed)] == [3]


@virtual_time
async def test_a_plain_parent_lends_its_slot_too() -> None:
    """L-4."""
    hw = with_agents(Recorder(takes=0))

    @hw.agent("plain")
    def plain(turn: Turn) -> str:
        return turn.wait_for(turn.delegate("a", "x", lane="main"))

    async with hw:
        hw.set_lane("main", 1)
        assert await hw.send("plain") == "re: x"


@virtual_time
async def test_a_hooks_context_variables_reach_the_thread() -> None:
    hw = Headway()

    @hw.before
    def name(turn: Turn) -> None:
        who.set("ann")

    @hw.agent("a")
    def agent(turn: Turn) -> str:
        return who.get()

    async with hw:
        assert await hw.send("a") == "ann"


def test_a_plain_function_sees_its_cancellation() -> None:
    """In real time, because a thread takes real time."""

    async def main() -> None:
        hw = Headway()
        began = threading.Event()

        @hw.agent("a")
        def agent(turn: Turn) -> str:
            began.set()
            while not turn.cancelled:
                time.sleep(0.001)
            turn.raise_if_cancelled()
            return "never"

        async with hw:
            handle = await hw.submit("a", session="s")
            await asyncio.to_thread(began.wait, 60)
            assert str(await hw.stop("s")) == "1 running stopped"
            assert ending(await handle.wait()) == "cancelled/stopped"

    asyncio.run(main())


def test_s3_a_plain_function_holds_its_session_until_it_has_returned() -> None:
    async def main() -> None:
        hw = Headway()
        log: list[str] = []
        began = threading.Event()

        @hw.agent("a")
        def agent(turn: Turn) -> str:
            log.append(f"{turn.text} begins")
            began.set()
            if turn.text == "old":
                while not turn.cancelled:
                    time.sleep(0.001)
                time.sleep(0.1)
            log.append(f"{turn.text} ends")
            return turn.text

        async with hw:
            old = await hw.submit("a", "old", session="s")
            await asyncio.to_thread(began.wait, 60)
            new = await hw.submit("a", "new", session="s", mode="interrupt")
            assert await new.reply() == "new"
            assert ending(await old.wait()) == "cancelled/superseded"
            assert log == ["old begins", "old ends", "new begins", "new ends"]

    asyncio.run(main())


def test_s3_a_plain_function_that_ignores_its_cancellation_is_left_behind() -> None:
    async def main() -> None:
        hw = Headway(settings=Settings(cancel_grace=20 * MILLISECOND))
        began, go_on = threading.Event(), threading.Event()

        @hw.agent("a")
        def agent(turn: Turn) -> str:
            if turn.text == "old":
                began.set()
                go_on.wait(60)
            return turn.text

        async with hw:
            heard = hear(hw)
            old = await hw.submit("a", "old", session="s")
            await asyncio.to_thread(began.wait, 60)
            await old.cancel()
            assert ending(await old.wait()) == "cancelled/stopped"
            assert len(only(heard, AttemptAbandoned)) == 1
            assert await hw.send("a", "new", session="s") == "new"
            with hw.events() as listener:
                go_on.set()
                assert isinstance(await anext(listener), LateResult)
            assert ending(old.outcome) == "cancelled/stopped"

    asyncio.run(asyncio.wait_for(main(), 60))


def test_a_plain_function_that_waits_on_the_loop_is_woken_by_its_cancellation() -> None:
    """`wait_for` would else block for ever: what it waits for need never come."""

    async def main() -> None:
        hw = Headway(settings=Settings(cancel_grace=30 * SECOND))
        began, ended = threading.Event(), threading.Event()
        never = asyncio.Event()
        woken: list[str] = []

        async def something() -> str:
            await never.wait()
            return "came"

        @hw.agent("a")
        def agent(turn: Turn) -> str:
            began.set()
            try:
                woken.append(turn.wait_for(something()))
            except BaseException as error:
                woken.append(type(error).__name__)
                raise
            finally:
                ended.set()
            return "x"

        async with hw:
            heard = hear(hw)
            handle = await hw.submit("a", session="s")
            await asyncio.to_thread(began.wait, 60)
            await handle.cancel()
            assert ending(await handle.wait()) == "cancelled/stopped"
            never.set()
            await asyncio.to_thread(ended.wait, 60)
            assert woken == ["CancelledError"]
            assert only(heard, AttemptAbandoned) == []

    asyncio.run(asyncio.wait_for(main(), 60))


@virtual_time
async def test_many_plain_functions_at_once_are_bounded_by_their_lane() -> None:
    hw = Headway()
    live, most = 0, 0
    lock = threading.Lock()

    @hw.agent("a")
    def agent(turn: Turn) -> str:
        nonlocal live, most
        with lock:
            live += 1
            most = max(most, live)
        time.sleep(0.002)
        with lock:
            live -= 1
        return "done"

    async with hw:
        hw.set_lane("main", 3)
        await asyncio.gather(*(hw.send("a") for _ in range(12)))
        await moment()
        assert most <= 3
