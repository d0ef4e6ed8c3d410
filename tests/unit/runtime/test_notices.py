"""Notices of how tasks ended: one for each final state, stored with the outcome (T-4)."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from headway import Headway, InvalidInput, Permanent, Reply, Turn
from headway.core.callback_url import CALLBACK
from headway.model.errors import QueueFull, RunFailed
from headway.model.places import Delivery
from headway.model.run import LaneName, Route
from headway.model.settings import DEFAULT_LANES, LaneSettings, Limits, Settings
from headway.model.task import Task
from headway.testing import virtual_time
from tests.unit.runtime.hooks import Hooks, settings
from tests.unit.runtime.worlds import Recorder, deaf_sleep

CLICK = Task("click")
URL = "https://hook.example/x?token=s3cret"


def program(agent: Callable[[Turn], Awaitable[object]], **fields: object) -> Headway:
    hw = Headway(settings=settings(**fields))
    hw.agent("a")(agent)
    return hw


async def told(hooks: Hooks) -> list[tuple[object, object]]:
    await asyncio.sleep(1)
    assert len({delivery.id for delivery in hooks.told}) == len(hooks.told)
    return [(notice["state"], notice["reason"]) for notice in hooks.notices()]


@virtual_time
async def test_t4_a_notice_says_how_it_ended() -> None:
    async def a(turn: Turn) -> Reply:
        turn.usage(3, 4)
        await asyncio.sleep(2)
        return Reply("done so", data={"rows": [1, None]})

    hooks, hw = Hooks(), program(a)
    async with hw:
        hooks.use(hw)
        handle = await hw.submit(
            "a", task=CLICK, callback=URL, session="s", idempotency_key="k-1", deadline="1m"
        )
        await handle.wait()
        await asyncio.sleep(1)
    (notice,) = hooks.notices()
    assert hooks.checked == [URL]
    (delivery,) = hooks.told
    assert (delivery.id, delivery.route) == (f"{handle.id}.callback", Route(CALLBACK, peer=URL))
    created, started, finished = (
        notice.pop(name) for name in ("createdAt", "startedAt", "finishedAt")
    )
    assert str(created) <= str(started) < str(finished)
    assert notice == {
        "id": f"{handle.id}.callback",
        "taskId": handle.id,
        "agentId": "a",
        "action": "click",
        "session": "s",
        "idempotencyKey": "k-1",
        "state": "done",
        "reason": None,
        "code": "",
        "error": "",
        "text": "done so",
        "data": {"rows": [1, None]},
        "attachments": [],
        "details": None,
        "attempt": 1,
        "tokensIn": 3,
        "tokensOut": 4,
    }


@virtual_time
async def test_t4_failed_and_past_its_deadline_while_queued() -> None:
    async def a(turn: Turn) -> str:
        await asyncio.sleep(10)
        raise Permanent("no such page")

    hooks, hw = Hooks(), program(a)
    async with hw:
        hooks.use(hw)
        await hw.submit("a", task=CLICK, callback=URL, session="s")
        await hw.submit("a", task=CLICK, callback=URL, session="s", deadline="5s")
        await asyncio.sleep(20)
        assert await told(hooks) == [("failed", "deadline_queued"), ("failed", "error")]
        first, second = hooks.notices()
        assert (first["attempt"], first["startedAt"]) == (0, None)
        assert "no such page" in str(second["error"])


@virtual_time
async def test_t4_a_deadline_that_has_passed_already_is_told_too() -> None:
    hooks, hw = Hooks(), program(Recorder())
    async with hw:
        hooks.use(hw)
        with pytest.raises(RunFailed):
            await hw.submit("a", task=CLICK, callback=URL, deadline=0)
        assert await told(hooks) == [("failed", "deadline_queued")]


@virtual_time
async def test_t4_cancelled_while_waiting_and_by_clearing_its_lane() -> None:
    lanes = {**DEFAULT_LANES, LaneName("main"): LaneSettings(1)}
    hooks, hw = Hooks(), program(Recorder(takes=30), lanes=lanes)
    async with hw:
        hooks.use(hw)
        running = await hw.submit("a", task=CLICK)
        cancelled = await hw.submit("a", task=CLICK, callback=URL)
        await hw.submit("a", task=CLICK, callback=URL)
        await hw.cancel(cancelled)
        assert await told(hooks) == [("cancelled", "stopped")]
        hw.clear_lane("main")
        assert await told(hooks) == [("cancelled", "stopped"), ("cancelled", "lane_cleared")]
        await hw.cancel(running)
        assert len(hooks.told) == 2, "who did not ask is not told"


@virtual_time
async def test_t4_an_executor_that_is_slow_to_abort_has_one_notice_once_it_has_returned() -> None:
    """Cancelled twice, and late: one notice, and its slot is counted until it has returned (S-3)."""
    began = asyncio.Event()

    async def a(turn: Turn) -> str:
        began.set()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            await deaf_sleep(5)
        return "too late"

    hooks, hw = Hooks(), program(a)
    async with hw:
        hooks.use(hw)
        handle = await hw.submit("a", task=CLICK, callback=URL, deadline="1h")
        await began.wait()
        await hw.cancel(handle)
        await asyncio.sleep(1)
        await hw.cancel(handle)
        assert hooks.told == [], "it still runs"
        assert (await hw.run(handle)).cancelling
        await asyncio.sleep(10)
        assert await told(hooks) == [("cancelled", "stopped")]
        await asyncio.sleep(3600)
        assert len(hooks.tried) == 1


@virtual_time
async def test_d6_a_repeated_key_sends_no_second_notice() -> None:
    hooks, hw = Hooks(), program(Recorder())
    async with hw:
        hooks.use(hw)
        for _ in range(3):
            handle = await hw.submit("a", task=CLICK, callback=URL, idempotency_key="k")
            await handle.wait()
        assert await told(hooks) == [("done", None)]


@virtual_time
async def test_t4_who_is_refused_has_his_answer_and_no_notice() -> None:
    limits = Limits(max_queue=1, max_inflight=1)
    hooks, hw = Hooks(), program(Recorder(takes=5), limits=limits)
    async with hw:
        hooks.use(hw)
        for _ in range(2):
            await hw.submit("a", task=CLICK, callback=URL)
        with pytest.raises(QueueFull):
            await hw.submit("a", task=CLICK, callback=URL)
        await asyncio.sleep(20)
        assert await told(hooks) == [("done", None)] * 2


@virtual_time
async def test_t4_without_a_secret_a_callback_is_refused_with_what_to_set() -> None:
    recorder = Recorder()
    hw = program(recorder, callbacks=Settings().callbacks)
    async with hw:
        with pytest.raises(InvalidInput, match="HEADWAY_CALLBACKS_SECRET") as wrong:
            await hw.submit("a", task=CLICK, callback=URL)
        assert wrong.value.field == "callback"
        assert "s3cret" not in str(wrong.value)
        with pytest.raises(InvalidInput, match="HEADWAY_CALLBACKS_SECRET"):
            await hw.submit_all("a", [{"task": CLICK, "callback": URL}], atomic=True)
        (refused,) = await hw.submit_all("a", [{"task": CLICK, "callback": URL}])
        assert isinstance(refused, InvalidInput)
        assert refused.field == "tasks[0].callback"
        assert (await hw.runs()).runs == ()


@virtual_time
async def test_t4_only_a_task_calls_back() -> None:
    hooks, hw = Hooks(), program(Recorder())
    async with hw:
        hooks.use(hw)
        with pytest.raises(InvalidInput, match="task") as wrong:
            await hw.submit("a", "hello", callback=URL)
        assert wrong.value.field == "callback"
        with pytest.raises(InvalidInput):
            await hw.submit("a", task=CLICK, callback="ftp://x/")
        with pytest.raises(InvalidInput, match="Headway's own"):
            await hw.submit("a", "hello", route=Route(CALLBACK, peer=URL))
        assert hooks.checked == []


@virtual_time
async def test_t4_a_wrong_address_refuses_the_task_before_anything_is_kept() -> None:
    class Picky(Hooks):
        async def check(self, url: str) -> None:
            await asyncio.sleep(0.5)
            if "private" in url:
                raise InvalidInput("callback", "…", "public")

    hooks, hw = Picky(), program(Recorder())
    async with hw:
        hooks.use(hw)
        with pytest.raises(InvalidInput):
            await hw.submit("a", task=CLICK, callback="http://private.example/")
        assert (await hw.runs()).runs == ()
        requests = [
            {"task": CLICK, "session": "s", "callback": "http://slow.example/"},
            {"task": CLICK, "session": "s"},
            {"task": CLICK, "session": "s", "callback": "http://private.example/"},
        ]
        with pytest.raises(InvalidInput) as wrong:
            await hw.submit_all("a", requests, atomic=True)
        assert wrong.value.field == "tasks[2].callback"
        assert (await hw.runs()).runs == ()
        first, second, third = await hw.submit_all("a", requests)
        assert isinstance(third, InvalidInput)
        assert third.field == "tasks[2].callback"
        assert not isinstance(first, Exception)
        assert not isinstance(second, Exception)
        states = [(await hw.run(each)).state for each in (first, second)]
        assert states == ["running", "queued"], "in the order of the batch (S-1)"


@virtual_time
async def test_t4_an_agents_reply_is_never_signed_as_a_notice() -> None:
    """A job's replies cannot go to the channel of callbacks, nor a heartbeat's."""
    hooks, hw = Hooks(), program(Recorder())
    async with hw:
        hooks.use(hw)
        to_hook = Route(CALLBACK, peer=URL)
        with pytest.raises(InvalidInput, match="Headway's own"):
            await hw.jobs.add("j", "a", at="in 1m", text="x", deliver=to_hook)
        with pytest.raises(InvalidInput, match="Headway's own"):
            await hw.heartbeats.set("a", every="1m", prompt="?", target=to_hook)


@pytest.mark.parametrize("orphaned", [False, True])
def test_t4_the_notice_is_in_the_store_with_the_outcome(tmp_path: Path, orphaned: bool) -> None:
    """A node that cannot deliver keeps the notice, and one that can delivers it; also of a task of a dead node."""
    store = f"sqlite:///{tmp_path}/headway.db"

    async def first() -> str:
        began = asyncio.Event()

        async def a(turn: Turn) -> str:
            began.set()
            if orphaned:
                await asyncio.sleep(3600)
            return "did it"

        hw = Headway(store, settings=settings())
        hw.agent("a")(a)
        await hw.start()
        hw.engine.set_callbacks(None, Hooks().check)
        handle = await hw.submit("a", task=CLICK, callback=URL, deadline="1h")
        await began.wait()
        if orphaned:
            # As if the process had been killed.
            hw.engine._fail(RuntimeError("the test ends it"))
        else:
            await handle.wait()
        await hw.close(0)
        return handle.id

    async def second(task: str) -> list[Delivery]:
        hooks = Hooks()
        hw = Headway(store, settings=settings())
        hw.agent("a")(Recorder(takes=0))
        async with hw:
            hooks.use(hw)
            await hooks.came.wait()
            (notice,) = hooks.notices()
            assert notice["taskId"] == task
            assert (notice["state"], notice["reason"], notice["text"]) == (
                ("failed", "orphaned", "") if orphaned else ("done", None, "did it")
            )
        return hooks.told

    task = asyncio.run(asyncio.wait_for(first(), 30))
    (delivery,) = asyncio.run(asyncio.wait_for(second(task), 30))
    assert delivery.id == f"{task}.callback"
