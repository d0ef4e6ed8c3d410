"""The table of methods: all that there should be, each documented, each an operation."""

import msgspec
import pytest

from headway import Headway, Turn
from headway.gateway.rpc.discover import discovery
from headway.gateway.rpc.methods import METHODS
from headway.testing import virtual_time
from headway.wire.errors import ErrorAnswer
from tests.unit.gateway.rpc.lines import called

NAMES = [
    "cron.list",
    "cron.get",
    "cron.create",
    "cron.update",
    "cron.delete",
    "cron.toggle",
    "cron.run",
    "cron.runs",
    "cron.status",
    "chat.send",
    "chat.abort",
    "chat.history",
    "queue.status",
    "queue.set",
    "queue.clear",
    "lanes.list",
    "lanes.set",
    "lanes.clear",
    "lanes.pause",
    "lanes.resume",
    "tasks.submit",
    "tasks.batch",
    "tasks.list",
    "tasks.get",
    "tasks.cancel",
    "tasks.stats",
    "heartbeat.list",
    "heartbeat.get",
    "heartbeat.set",
    "heartbeat.delete",
    "heartbeat.toggle",
    "heartbeat.wake",
    "heartbeat.log",
    "wake",
    "workers.list",
    "machine.get",
    "health",
    "events.subscribe",
    "events.unsubscribe",
    "rpc.discover",
]


def world() -> Headway:
    hw = Headway()

    @hw.agent("a")
    async def a(turn: Turn) -> str:
        return f"re: {turn.text}"

    return hw


def test_c13_all_methods_are_there() -> None:
    assert set(METHODS) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_each_method_is_documented(name: str) -> None:
    method = METHODS[name]
    assert method.doc.endswith((".", ")")), method.doc
    for kind in (method.params, method.result):
        assert kind.__doc__, kind


def test_discovery_has_a_schema_for_all_and_each_reference_leads_somewhere() -> None:
    told = msgspec.json.decode(msgspec.json.encode(discovery(METHODS.values())))
    assert [method["name"] for method in told["methods"]] == sorted(NAMES)
    references: set[str] = set()

    def look(part: object) -> None:
        if isinstance(part, dict):
            reference = part.get("$ref")
            if isinstance(reference, str):
                references.add(reference.removeprefix("#/schemas/"))
            for value in part.values():
                look(value)
        elif isinstance(part, list):
            for value in part:
                look(value)

    look(told)
    assert references <= set(told["schemas"])
    assert {"chat.reply", "RunFinished", "EventsMissed"} <= {
        frame["event"] for frame in told["frames"]
    }


@virtual_time
async def test_t2_parameters_that_are_no_object_are_called_by_their_name() -> None:
    async with called(world()) as line:
        line.say('{"id": 1, "method": "cron.list", "params": []}')
        told = msgspec.convert((await line.answer_of(1))["error"], ErrorAnswer)
    assert told.error.startswith("params: [] is not allowed")
    assert told.details["field"] == "params"


@virtual_time
async def test_c13_a_job_from_its_creation_to_its_end() -> None:
    async with called(world()) as line:
        job = (await line.call("cron.create", name="n", agentId="a", every="1h", text="hello"))[
            "id"
        ]
        assert (await line.call("cron.get", job=job))["name"] == "n"
        changed = await line.call("cron.update", job=job, patch={"text": "and now?"})
        assert "and now?" in str(changed)
        wrong = await line.refused("cron.update", job=job, patch={"txt": "x"})
        assert wrong["details"]["suggestion"] == "patch.text"  # type: ignore[index]
        assert (await line.call("cron.toggle", job=job, enabled=False))["enabled"] is False
        assert (await line.call("cron.toggle", job=job, enabled=True))["enabled"] is True
        assert (await line.call("cron.run", job=job))["runId"]
        assert (await line.call("cron.runs", job=job))["entries"]
        assert (await line.call("cron.runs"))["entries"]
        assert [each["id"] for each in (await line.call("cron.list"))["jobs"]] == [job]  # type: ignore[attr-defined]
        assert await line.call("cron.status")
        await line.call("cron.delete", job=job)
        assert (await line.refused("cron.get", job=job))["code"] == "job_not_found"


@virtual_time
async def test_s5_the_queue_of_a_session_by_key_or_by_place() -> None:
    async with called(world()) as line:
        place = {"agentId": "a", "channel": "web", "peer": "42"}
        key = "agent:a:web:dm:42"
        shown = await line.call("queue.set", **place, mode="collect", cap=25)
        assert shown["key"] == key
        assert shown["queue"]["mode"] == "collect"  # type: ignore[index]
        await line.call("queue.set", session=key, cap=7)
        queue = (await line.call("queue.status", **place))["queue"]
        assert (queue["mode"], queue["cap"]) == ("collect", 7)  # type: ignore[index]
        queue = (await line.call("queue.set", session=key, reset=True, drop="new"))["queue"]
        assert (queue["mode"], queue["drop"]) == (None, "new")  # type: ignore[index]
        assert (await line.call("queue.clear", session=key))["cleared"] == 0


@virtual_time
async def test_lanes_tasks_and_heartbeats() -> None:
    async with called(world()) as line:
        assert (await line.call("lanes.set", name="main", width=3))["width"] == 3
        assert (await line.call("lanes.pause", name="main"))["paused"] is True
        task = (await line.call("tasks.submit", agentId="a", action="click"))["taskId"]
        assert (await line.call("tasks.get", taskId=task))["state"] == "queued"
        assert (await line.call("lanes.clear", name="main"))["cleared"] == 1
        assert (await line.call("lanes.resume", name="main"))["width"] == 3
        batch = await line.call(
            "tasks.batch", agentId="a", tasks=[{"action": "x"}, {"action": "y"}]
        )
        assert batch["submitted"] == 2
        assert len((await line.call("tasks.list"))["tasks"]) == 3  # type: ignore[arg-type]
        assert (await line.refused("tasks.cancel", taskId=task))["code"] == "already_over"
        assert (await line.call("tasks.stats"))["draining"] is False
        await line.call("heartbeat.set", agentId="a", every="10m", prompt="look")
        assert (await line.call("heartbeat.toggle", agentId="a", enabled=False))["enabled"] is False
        assert (await line.call("heartbeat.toggle", agentId="a", enabled=True))["enabled"] is True
        assert (await line.call("wake", agentId="a"))["wakeAt"]
        assert await line.call("heartbeat.log", agentId="a")
        assert len((await line.call("heartbeat.list"))["heartbeats"]) == 1  # type: ignore[arg-type]
        await line.call("heartbeat.delete", agentId="a")
        assert await line.refused("heartbeat.get", agentId="a")


@virtual_time
async def test_discover_over_the_line() -> None:
    async with called(world()) as line:
        assert len((await line.call("rpc.discover"))["methods"]) == len(NAMES)  # type: ignore[arg-type]
