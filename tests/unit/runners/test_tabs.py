"""Browser instances as an agent (T-3): a task goes to the instance that owns its tab."""

import asyncio
import json

import httpx
import pytest

from headway import Headway, InvalidInput, RateLimited, Reply, WorkFailed
from headway.model.errors import UnknownName
from headway.model.runner import TabsSpec
from headway.model.task import Task
from headway.runners.tabs import TabsRunner, action_of
from headway.testing import virtual_time
from tests.unit.runners.endpoints import answer, endpoint, json_answer, play, turn_of
from tests.unit.runtime.worlds import ending

OK = json_answer({"success": True})
ONE = "http://one:9867"
TWO = "http://two:9867"


class Instances:
    """All instances at once: which request came, and with what."""

    def __init__(self) -> None:
        self.asked: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        return httpx.Response(200, json={"at": request.url.host})

    @property
    def targets(self) -> list[str]:
        return [f"{each.url.host}{each.url.raw_path.decode()}" for each in self.asked]


def runner_of(spec: TabsSpec, resolver: object = None) -> tuple[TabsRunner, Instances]:
    instances = Instances()
    transport = httpx.MockTransport(instances)
    return TabsRunner(spec, resolver, transport=transport), instances  # type: ignore[arg-type]


async def click(runner: TabsRunner, tab: str) -> Reply:
    return await runner.run(turn_of("", Task("click", tab)))


def test_t3_a_task_becomes_an_action_in_its_tab() -> None:
    async def main() -> None:
        async with endpoint(OK) as server:
            runner = TabsRunner(TabsSpec(instances={"t1": f"{server.url}/"}, token="s3cret"))
            task = Task("type", "t1", "#name", "e5", {"text": "Ann", "delay": 5})
            assert await runner.run(turn_of("", task)) == Reply(data={"success": True})
            await runner.close()
        (asked,) = server.asked
        assert (asked.method, asked.target) == ("POST", "/tabs/t1/action")
        assert asked.json == {
            "kind": "type",
            "ref": "e5",
            "selector": "#name",
            "text": "Ann",
            "delay": 5,
        }
        assert asked.headers["authorization"] == "Bearer s3cret"
        assert asked.headers["x-agent-id"] == "browser"
        assert asked.headers["x-request-id"] == "run-1.2"
        assert asked.headers["x-headway-fence"] == "3.7"

    play(main())


@pytest.mark.parametrize(
    ("task", "action"),
    [
        (Task("click", "t1"), {"kind": "click"}),
        (Task("click", "t1", ref="e1"), {"kind": "click", "ref": "e1"}),
        (
            Task("click", "t1", "#a", "e1", {"kind": "eval", "ref": "e9", "selector": "#b"}),
            {"kind": "click", "ref": "e1", "selector": "#a"},
        ),
        (
            Task("click", "t1", params={"ref": "e9", "selector": "#b", "tabId": "t2", "x": 1}),
            {"kind": "click", "x": 1},
        ),
        (Task("press", "t1", params={"key": None}), {"kind": "press", "key": None}),
    ],
)
def test_t3_params_never_override_reserved_keys(task: Task, action: dict[str, object]) -> None:
    assert action_of(task) == action


@pytest.mark.parametrize(
    ("tab", "step"),
    [
        ("../../admin", "..%2F..%2Fadmin"),
        ("@evil.com", "%40evil.com"),
        ("?x", "%3Fx"),
        ("a#b/c", "a%23b%2Fc"),
        ("%2e%2e", "%252e%252e"),
        ("grün", "gr%C3%BCn"),
    ],
)
def test_t3_a_tab_stays_one_step_of_the_path(tab: str, step: str) -> None:
    async def main() -> None:
        async with endpoint(OK) as server:
            runner = TabsRunner(TabsSpec(instances={tab: server.url}))
            await click(runner, tab)
            await runner.close()
        assert server.asked[0].target == f"/tabs/{step}/action"

    play(main())


# Who owns a tab.


@virtual_time
async def test_t3_a_map_says_who_owns_a_tab() -> None:
    runner, instances = runner_of(TabsSpec(instances={"a": ONE, "b": TWO, "c": f"{TWO}/base/"}))
    for tab in "abc":
        await click(runner, tab)
    assert instances.targets == [
        "one/tabs/a/action",
        "two/tabs/b/action",
        "two/base/tabs/c/action",
    ]


@virtual_time
async def test_t3_a_template_says_who_owns_the_others() -> None:
    runner, instances = runner_of(
        TabsSpec(instances={"a": ONE}, url="http://browser-{tab_id}:9867")
    )
    await click(runner, "a")
    await click(runner, "b-1_x")
    assert instances.targets == ["one/tabs/a/action", "browser-b-1_x/tabs/b-1_x/action"]


@pytest.mark.parametrize("tab", ["../../admin", "@evil.com", "?x", "evil.com", "a:80", "x" * 70])
@virtual_time
async def test_t3_a_tab_cannot_choose_the_host(tab: str) -> None:
    runner, instances = runner_of(TabsSpec(url="http://browser-{tab_id}:9867"))
    with pytest.raises(WorkFailed) as failure:
        await click(runner, tab)
    assert (failure.value.code, failure.value.permanent) == ("tab_not_found", True)
    assert instances.asked == []


def plain(tab: str) -> str | None:
    return {"a": ONE, "b": TWO}.get(tab)


async def awaited(tab: str) -> str | None:
    await asyncio.sleep(1)
    return plain(tab)


@pytest.mark.parametrize("resolver", [plain, awaited])
@virtual_time
async def test_t3_a_function_says_who_owns_a_tab(resolver: object) -> None:
    runner, instances = runner_of(TabsSpec(), resolver)
    await click(runner, "a")
    await click(runner, "b")
    assert instances.targets == ["one/tabs/a/action", "two/tabs/b/action"]
    with pytest.raises(WorkFailed, match="no instance owns the tab 'c'") as failure:
        await click(runner, "c")
    assert (failure.value.code, failure.value.permanent) == ("tab_not_found", True)
    assert failure.value.details == {"tabId": "c"}


@virtual_time
async def test_t3_a_function_that_raises_fails_the_attempt() -> None:
    def broken(tab: str) -> str:
        raise ConnectionError(f"nobody knows {tab}")

    runner, instances = runner_of(TabsSpec(), broken)
    with pytest.raises(ConnectionError, match="nobody knows a"):
        await click(runner, "a")
    assert instances.asked == []


@pytest.mark.parametrize(
    "found", ["", "one:9867", "file:///etc", "http://u:p@h/", "http://h/?x=1", 7]
)
@virtual_time
async def test_t3_a_function_must_answer_with_an_address(found: object) -> None:
    runner, instances = runner_of(TabsSpec(), lambda tab: found)
    with pytest.raises(WorkFailed, match="resolver") as failure:
        await click(runner, "a")
    assert (failure.value.code, failure.value.permanent) == ("bad_address", True)
    assert instances.asked == []


@virtual_time
async def test_t3_each_instance_gets_its_own_token() -> None:
    spec = TabsSpec(
        instances={"a": ONE, "b": TWO, "c": "http://three:80/"},
        token="common",
        tokens={"HTTP://TWO:9867/": "of-two", "http://three": ""},
    )
    runner, instances = runner_of(spec)
    for tab in "abc":
        await click(runner, tab)
    sent = [each.headers.get("authorization") for each in instances.asked]
    assert sent == ["Bearer common", "Bearer of-two", None]


# What comes back.


def test_t3_an_instance_that_says_no_fails_the_task_with_status_and_body() -> None:
    """Also 404: that the instance does not know the tab is its own word, not ours."""

    async def main() -> None:
        gone = json_answer({"error": "tab t1 not found"}, status="404 Not Found")
        async with endpoint(gone) as server:
            runner = TabsRunner(TabsSpec(instances={"t1": server.url}))
            with pytest.raises(WorkFailed) as failure:
                await click(runner, "t1")
            await runner.close()
        assert (failure.value.code, failure.value.permanent) == ("http_status", True)
        assert failure.value.details == {
            "status": 404,
            "body": json.dumps({"error": "tab t1 not found"}),
        }

    play(main())


def test_x6_an_instance_may_ask_for_a_pause() -> None:
    async def main() -> None:
        busy = answer(b"", "Retry-After: 3", status="429 Too Many Requests")
        async with endpoint(busy) as server:
            runner = TabsRunner(TabsSpec(instances={"t1": server.url}))
            with pytest.raises(RateLimited):
                await click(runner, "t1")
            await runner.close()

    play(main())


# At submission.


@pytest.mark.parametrize("tab", ["", ".", ".."])
@virtual_time
async def test_t3_a_task_without_a_tab_is_refused_at_once(tab: str) -> None:
    runner, instances = runner_of(TabsSpec(instances={"a": ONE}))
    hw = Headway()
    hw.add_agent("browser", runner)
    async with hw:
        with pytest.raises(InvalidInput) as refused:
            await hw.submit("browser", task=Task("click", tab))
        assert refused.value.field == "task.tab_id"
        with pytest.raises(InvalidInput) as refused:
            await hw.submit_all(
                "browser",
                [{"task": Task("click", "a")}, {"task": Task("click", tab)}],
                atomic=True,
            )
        assert refused.value.field == "tasks[1].task.tab_id"
        first, second = await hw.submit_all(
            "browser", [{"task": Task("click", "a")}, {"task": Task("click", tab)}]
        )
        assert not isinstance(first, Exception)
        assert (await first.wait()).ok
        assert isinstance(second, InvalidInput)
        with pytest.raises(InvalidInput, match="a task with an action"):
            await hw.submit("browser", "just words")
        assert len(instances.asked) == 1


@virtual_time
async def test_t3_a_tab_that_nobody_owns_fails_the_task_with_a_code() -> None:
    runner, _ = runner_of(TabsSpec(instances={"a": ONE}))
    hw = Headway()
    hw.add_agent("browser", runner)
    async with hw:
        outcome = await (await hw.submit("browser", task=Task("click", "z"), retries=3)).wait()
    assert ending(outcome) == "failed/error"
    assert (outcome.code, outcome.details) == ("tab_not_found", {"tabId": "z"})


@virtual_time
async def test_t3_a_run_without_a_task_that_came_another_way_fails_for_good() -> None:
    """A node that only asks cannot check, and neither can a job."""
    runner, instances = runner_of(TabsSpec(instances={"a": ONE}))
    for turn in (turn_of("words"), turn_of("", Task("click"))):
        with pytest.raises(WorkFailed) as failure:
            await runner.run(turn)
        assert (failure.value.code, failure.value.permanent) == ("tab_not_found", True)
    assert instances.asked == []


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({}, "instances"),
        ({"instances": {"a": "one"}}, "instances.a"),
        ({"instances": {"a": "http://h/?x=1"}}, "instances.a"),
        ({"url": "http://h/{tab}"}, "url"),
        ({"url": "http://h/?tab={tab_id}"}, "url"),
        ({"instances": {"a": ONE}, "tokens": {TWO: "x"}}, "tokens"),
        ({"instances": {"a": ONE}, "tokens": {ONE: "x y"}}, f"tokens.{ONE}"),
        ({"instances": {"a": ONE}, "token": "ü"}, "token"),
        ({"instances": {"a": ONE}, "headers": {"X-Agent-Id": "x"}}, "headers"),
    ],
)
def test_a_wrong_configuration_is_refused_naming_the_field(
    spec: dict[str, object], field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        TabsRunner(TabsSpec(**spec))  # type: ignore[arg-type]
    assert refused.value.field == field


def test_two_ways_to_find_an_instance_are_refused() -> None:
    with pytest.raises(InvalidInput, match="url"):
        TabsRunner(TabsSpec(url="http://h-{tab_id}"), plain)
    with pytest.raises(InvalidInput, match="resolver"):
        TabsRunner(TabsSpec(), "http://h")  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match="did you mean"):
        TabsRunner(TabsSpec(instances={"a": ONE}, tokens={"http://one:9868": "x"}))
