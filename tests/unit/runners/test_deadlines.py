"""How long an endpoint may take, and what a slow end of it holds back. In virtual time."""

import asyncio

import httpx
import pytest

from headway import Headway, Turn
from headway.model.runner import HttpSpec
from headway.model.settings import AgentSettings
from headway.model.task import Task
from headway.runners.http import HttpRunner
from headway.testing import virtual_time
from tests.unit.runtime.worlds import deaf_sleep, ending, moment, now_s

WORK = Task("work")


class Worker:
    """An endpoint that takes its time."""

    def __init__(self, takes_s: float) -> None:
        self._takes_s = takes_s
        self.asked = 0
        self.left_at_s: list[float] = []
        """When callers hung up."""

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked += 1
        try:
            await asyncio.sleep(self._takes_s)
        except asyncio.CancelledError:
            self.left_at_s.append(now_s())
            raise
        return httpx.Response(200, json={"took": self._takes_s})


def with_endpoint(worker: Worker, **options: object) -> Headway:
    hw = Headway()
    runner = HttpRunner(HttpSpec(url="http://worker/"), transport=httpx.MockTransport(worker))
    hw.add_agent("worker", runner, AgentSettings(**options))  # type: ignore[arg-type]
    return hw


@virtual_time
async def test_f5_a_deadline_of_120_s_with_90_s_of_work_is_done() -> None:
    worker = Worker(90)
    async with with_endpoint(worker) as hw:
        outcome = await (await hw.submit("worker", task=WORK, deadline="120s")).wait()
        assert now_s() == 90
    assert outcome.ok
    assert outcome.reply is not None
    assert outcome.reply.data == {"took": 90}


@pytest.mark.parametrize("retries", [0, 5])
@virtual_time
async def test_f5_a_deadline_that_passes_closes_the_request_at_that_instant(retries: int) -> None:
    worker = Worker(90)
    async with with_endpoint(worker) as hw:
        handle = await hw.submit("worker", task=WORK, deadline="60s", retries=retries)
        outcome = await handle.wait()
        assert now_s() == 60
    assert ending(outcome) == "failed/deadline_running"
    assert worker.left_at_s == [60]


@virtual_time
async def test_f5_the_60_s_that_tasks_have_by_default_count() -> None:
    worker = Worker(3_600)
    async with with_endpoint(worker) as hw:
        assert ending(await (await hw.submit("worker", task=WORK)).wait()) == (
            "failed/deadline_running"
        )
        assert now_s() == 60


@virtual_time
async def test_a_message_may_take_as_long_as_it_likes() -> None:
    worker = Worker(50 * 3_600)
    async with with_endpoint(worker) as hw:
        assert (await (await hw.submit("worker", "hello")).wait()).ok
        assert now_s() == 50 * 3_600


@virtual_time
async def test_a_timeout_of_the_agent_is_no_deadline_of_the_caller() -> None:
    worker = Worker(90)
    async with with_endpoint(worker, timeout=30_000_000) as hw:
        outcome = await (await hw.submit("worker", "hello")).wait()
        assert now_s() == 30
    assert ending(outcome) == "failed/timed_out"
    assert worker.left_at_s == [30]


@virtual_time
async def test_f5_a_deadline_that_passes_as_a_slot_frees_never_calls_the_endpoint() -> None:
    """Both at second 10: what is past its deadline does not start."""
    worker = Worker(10)
    async with with_endpoint(worker, max_inflight=1) as hw:
        first = await hw.submit("worker", task=WORK)
        late = await hw.submit("worker", task=WORK, deadline="10s")
        assert ending(await late.wait()) == "failed/deadline_queued"
        assert (await first.wait()).ok
    assert worker.asked == 1


@virtual_time
async def test_c9_an_endpoint_that_is_away_is_asked_again_but_one_that_says_no_is_not() -> None:
    answers = [500, 503, 200]
    asked: list[float] = []

    async def endpoint(request: httpx.Request) -> httpx.Response:
        asked.append(now_s())
        return httpx.Response(answers.pop(0))

    hw = Headway()
    runner = HttpRunner(HttpSpec(url="http://worker/"), transport=httpx.MockTransport(endpoint))
    hw.add_agent("worker", runner)
    async with hw:
        assert (await (await hw.submit("worker", "hello", retries=3)).wait()).ok
        assert len(asked) == 3
        answers[:] = [400, 200]
        outcome = await (await hw.submit("worker", "hello", retries=3)).wait()
    assert (outcome.code, answers) == ("http_status", [200])
    assert outcome.details == {"status": 400, "body": ""}


@virtual_time
async def test_x6_a_rate_limit_holds_back_the_agent_and_fails_nothing() -> None:
    answers = [429, 200, 200]
    asked: list[float] = []

    async def endpoint(request: httpx.Request) -> httpx.Response:
        asked.append(now_s())
        return httpx.Response(answers.pop(0), headers={"Retry-After": "20"})

    hw = Headway()
    runner = HttpRunner(HttpSpec(url="http://worker/"), transport=httpx.MockTransport(endpoint))
    hw.add_agent("worker", runner, AgentSettings(max_inflight=1))
    async with hw:
        tasks = [await hw.submit("worker", task=WORK) for _ in range(2)]
        assert [ending(await task.wait()) for task in tasks] == ["done", "done"]
    assert asked == [0, 20, 20]


@virtual_time
async def test_s3_an_executor_that_is_slow_to_abort_keeps_its_place() -> None:
    """Two at once, three tasks; a cancelled one takes 5 s to end: the third waits for that."""
    began: list[tuple[str, float]] = []
    live = most = 0

    async def executor(turn: Turn) -> str:
        nonlocal live, most
        began.append((turn.text, now_s()))
        live += 1
        most = max(most, live)
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            await deaf_sleep(5)
            raise
        finally:
            live -= 1
        return "done"

    hw = Headway()
    hw.agent("executor", max_inflight=2)(executor)
    async with hw:
        first, second, third = [
            await hw.submit("executor", name, task=WORK) for name in ("first", "second", "third")
        ]
        await asyncio.sleep(1)
        await hw.cancel(first.id)
        await moment()
        view = await hw.run(first.id)
        assert (str(view.state), view.cancelling) == ("running", True)
        assert ending(await first.wait()) == "cancelled/stopped"
        assert now_s() == 6
        assert [ending(await each.wait()) for each in (second, third)] == ["done", "done"]
    assert began == [("first", 0), ("second", 0), ("third", 6)]
    assert most == 2
