"""What is counted, and that Prometheus can read it (O-3)."""

import asyncio
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from headway import Headway, Turn
from headway.gateway import build_app
from headway.gateway.access.caller import Caller
from headway.gateway.endpoint import Endpoint
from headway.gateway.metrics import Metrics, MetricsPage
from headway.gateway.metrics.metrics import STREAMING
from headway.gateway.metrics.snapshot import Snapshot
from headway.gateway.metrics.tables import OTHER, TURNS_S, Histogram, Names
from headway.gateway.operations.metrics import metrics
from headway.gateway.routes import ALL
from headway.model.errors import Unavailable
from headway.model.events import CATALOGUE, JobFired, RunFinished, RunStarted, RunSubmitted
from headway.model.run import AgentName, JobId, LaneName, RunId, SessionKey
from headway.model.telling import kind_of
from headway.model.time import MINUTE, SECOND
from headway.model.words import Fired, Reason, Scope, Source, State
from headway.testing import virtual_time
from headway.wire.health import NothingAsked
from tests.unit.gateway.asking import bearing
from tests.unit.gateway.calling import client, opened, served

Numbers = Callable[..., float | None]


def numbers(text: str) -> Numbers:
    """Looks up one number of a page by its name and labels."""
    found = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    return lambda name, **labels: found.get((name, frozenset(labels.items())))


async def scraped(http: httpx.AsyncClient) -> Numbers:
    answer = await http.get("/metrics")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/plain; version=0.0.4"
    return numbers(answer.text)


def headway(store: str = "memory://") -> Headway:
    hw = Headway(store, name="here")

    @hw.agent("quick")
    async def quick(turn: Turn) -> str:
        turn.usage(7, 3)
        return turn.text

    @hw.agent("slow")
    async def slow(turn: Turn) -> str:
        await asyncio.sleep(20)
        return turn.text

    @hw.agent("wrong")
    async def wrong(turn: Turn) -> str:
        raise ValueError(turn.text)

    return hw


@virtual_time
async def test_o3_runs_are_counted_by_source_lane_and_outcome() -> None:
    hw = headway()
    async with served(hw) as http:
        await hw.send("quick", "a")
        await http.post("/tasks", json={"agentId": "slow", "action": "x"})
        await (await hw.submit("wrong", "x", session="s")).wait()
        await asyncio.sleep(30)
        number = await scraped(http)
        assert number("headway_runs_submitted_total", source="message", lane="main") == 2
        assert number("headway_runs_submitted_total", source="task", lane="main") == 1
        done = {"state": "done", "reason": "", "lane": "main"}
        assert number("headway_runs_finished_total", **done) == 2
        failed = {"state": "failed", "reason": "error", "lane": "main"}
        assert number("headway_runs_finished_total", **failed) == 1
        assert number("headway_run_duration_seconds_count", lane="main") == 3
        assert number("headway_run_duration_seconds_bucket", lane="main", le="10.0") == 2
        assert number("headway_run_duration_seconds_bucket", lane="main", le="30.0") == 3
        assert number("headway_run_duration_seconds_sum", lane="main") == pytest.approx(20, abs=0.1)
        assert number("headway_run_wait_seconds_count", lane="main") == 3
        assert number("headway_model_tokens_total", direction="in") == 7
        assert number("headway_model_tokens_total", direction="out") == 3
        assert number("headway_events_total", event="AttemptFailed") == 1


@virtual_time
async def test_o3_what_is_just_now_is_asked_of_the_node() -> None:
    hw = headway()
    async with served(hw) as http:
        hw.set_lane("narrow", 1)
        for _ in range(3):
            await hw.submit("slow", "x", source="task", lane="narrow")
        await hw.submit("slow", "x", lane="nowhere")
        await asyncio.sleep(0.01)
        number = await scraped(http)
        assert number("headway_lane_width", lane="narrow") == 1
        assert number("headway_lane_running", lane="narrow") == 1
        assert number("headway_lane_waiting", lane="narrow") == 2
        assert number("headway_lane_reserved", lane="narrow") == 0
        assert number("headway_tasks_queued") == 2
        assert number("headway_tasks_inflight") == 1
        assert number("headway_unknown_lane_total") == 1
        assert number("headway_outbox_letters", state="waiting") == 0
        assert number("headway_outbox_letters", state="dead") == 0
        assert number("headway_ready") == 1
        hw.pause_lane("narrow")
        assert (await scraped(http))("headway_lane_paused", lane="narrow") == 1


@virtual_time
async def test_o3_answers_are_counted_by_the_path_of_the_table() -> None:
    async with served(headway()) as http:
        for each in range(3):
            assert (await http.get(f"/tasks/nobody-{each}")).status_code == 404
        await http.put("/tasks")
        number = await scraped(http)
        missing = {"method": "GET", "route": "/tasks/{taskId}", "status": "404"}
        assert number("headway_http_requests_total", **missing) == 3
        assert (
            number("headway_http_request_seconds_count", method="GET", route="/tasks/{taskId}") == 3
        )
        odd = {"method": "other", "route": "/tasks", "status": "405"}
        assert number("headway_http_requests_total", **odd) == 1


def test_o3_a_durable_store_is_measured(tmp_path: Path) -> None:
    async def scenario() -> None:
        hw = headway(f"sqlite:///{tmp_path}/headway.db")
        async with served(hw) as http:
            await hw.send("quick", "a")
            number = await scraped(http)
            assert number("headway_store_seconds_count", operation="admit") == 1
            assert (number("headway_store_seconds_count", operation="record") or 0) > 0
            left = number("headway_lease_remaining_seconds")
            assert left is not None
            assert 0 < left <= 30

    asyncio.run(scenario())


@virtual_time
async def test_o3_a_store_that_is_away_costs_one_number(monkeypatch: pytest.MonkeyPatch) -> None:
    hw = headway()

    async def away() -> tuple[int, int]:
        raise Unavailable("not now")

    async with served(hw) as http:
        monkeypatch.setattr(hw.engine.store, "count_letters", away)
        number = await scraped(http)
        assert number("headway_outbox_letters", state="waiting") is None
        assert number("headway_lane_width", lane="main") is not None


@virtual_time
async def test_o3_there_is_a_page_without_a_running_node_too() -> None:
    desk = build_app(headway()).desk
    page = await metrics(desk, Caller("somebody", tuple(Scope)), NothingAsked())
    number = numbers(page.text().decode())
    assert number("headway_ready") == 0
    assert number("headway_lane_width", lane="main") is None


@virtual_time
async def test_o3_nothing_is_heard_or_measured_any_more_when_the_gateway_is_closed() -> None:
    hw = headway()
    async with hw:
        engine = hw.engine
        async with build_app(hw) as gateway:
            metered = engine.meter
        assert metered == gateway.desk.metrics.stored
        assert engine.meter is None
        assert not engine.bus.heard
        await hw.send("quick", "a")
        page = MetricsPage(gateway.desk.metrics, Snapshot(ready=True, streams=0))
        assert numbers(page.text().decode())("headway_events_total", event="RunStarted") == 0


@virtual_time
async def test_o4_the_numbers_need_a_token_that_may_read() -> None:
    hw = headway()
    async with opened(hw) as gateway, bearing(gateway, hw, "read") as http:
        assert (await http.get("/metrics")).status_code == 200
        head = await http.head("/metrics")
        assert (head.status_code, head.content) == (200, b"")
        http.headers.pop("authorization")
        assert (await http.get("/metrics")).status_code == 401


def test_o3_promtool_finds_nothing_wrong(tmp_path: Path) -> None:
    """Its lint knows the conventions of Prometheus: names, units, help, types."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian package prometheus)")

    async def page() -> bytes:
        hw = headway(f"sqlite:///{tmp_path}/headway.db")
        async with opened(hw) as gateway, client(gateway) as http:
            await http.post("/tasks", json={"agentId": "quick", "action": "x"})
            await hw.send("quick", "a")
            await (await hw.submit("wrong", "x")).wait()
            for event in _EVENTS:
                gateway.desk.metrics.note(event)
            return (await http.get("/metrics")).content

    text = asyncio.run(page())
    checked = subprocess.run(
        [promtool, "check", "metrics"], input=text, capture_output=True, check=False
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")


def _started(attempt: int, waited: int, lane: str = "main", *, adopted: bool = False) -> RunStarted:
    return RunStarted(
        at=0,
        run_id=RunId("r"),
        agent=AgentName("a"),
        session=SessionKey("s"),
        lane=LaneName(lane),
        attempt=attempt,
        source=Source.TASK,
        waited=waited,
        adopted=adopted,
    )


def _finished(attempt: int, state: State, reason: Reason | None, lane: str = "main") -> RunFinished:
    return RunFinished(
        at=0,
        run_id=RunId("r"),
        agent=AgentName("a"),
        session=SessionKey("s"),
        lane=LaneName(lane),
        attempt=attempt,
        state=state,
        source=Source.TASK,
        reason=reason,
        took=SECOND,
    )


def _fired(kind: Fired, late: int) -> JobFired:
    return JobFired(
        at=MINUTE + late,
        job=JobId("j"),
        name="j",
        agent=AgentName("a"),
        due_at=MINUTE,
        run_id=RunId("r"),
        kind=kind,
    )


_EVENTS = (
    _started(1, SECOND),
    _started(2, MINUTE),
    _started(1, MINUTE, adopted=True),
    _finished(1, State.DONE, None),
    _finished(0, State.CANCELLED, Reason.STOPPED),
    _fired(Fired.ON_TIME, SECOND // 2),
    _fired(Fired.MANUAL, MINUTE),
)


def noted(*events: RunStarted | RunFinished | JobFired | RunSubmitted) -> Numbers:
    counted = Metrics()
    for event in events:
        counted.note(event)
    found = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in counted.collect()
        for sample in family.samples
    }
    return lambda name, **labels: found.get((name, frozenset(labels.items())))


def test_o3_a_wait_counts_before_the_first_attempt_only_and_a_duration_after_a_start() -> None:
    number = noted(*_EVENTS)
    assert number("headway_run_wait_seconds_sum", lane="main") == 1
    assert number("headway_run_duration_seconds_count", lane="main") == 1


def test_o3_the_lateness_of_jobs_leaves_out_what_people_asked_for() -> None:
    number = noted(*_EVENTS)
    assert number("headway_job_lateness_seconds_sum", kind="on_time") == 0.5
    assert number("headway_job_lateness_seconds_count", kind="manual") is None


def test_o3_each_event_of_the_catalogue_has_its_counter_from_the_start() -> None:
    number = noted()
    for kind in CATALOGUE:
        assert number("headway_events_total", event=kind_of(kind)) == 0


def test_o3_labels_stay_few_however_many_lanes_are_made() -> None:
    number = noted(*(_started(1, SECOND, f"lane-{each}") for each in range(150)))
    assert number("headway_run_wait_seconds_count", lane="lane-99") == 1
    assert number("headway_run_wait_seconds_count", lane="lane-100") is None
    assert number("headway_run_wait_seconds_count", lane=OTHER) == 50


def test_o3_a_known_name_stays_known_when_there_is_no_room_for_more() -> None:
    names = Names(most=1)
    assert [names.label(name) for name in ("a", "b", "a")] == ["a", OTHER, "a"]


def test_o3_a_bucket_holds_its_own_bound_and_all_below() -> None:
    table = Histogram("x_seconds", "Seconds.", (), TURNS_S)
    for span in (0, SECOND, SECOND + 1, 7200 * SECOND):
        table.observe((), span)
    (family,) = table.collect()
    buckets = {sample.labels.get("le"): sample.value for sample in family.samples}
    assert buckets["0.005"] == 1
    assert buckets["1.0"] == 2
    assert buckets["2.5"] == 3
    assert buckets["3600.0"] == 3
    assert buckets["+Inf"] == 4


def test_o3_streams_are_not_among_the_durations() -> None:
    """How long a listener stays says nothing about the server."""
    assert {
        route.path for route in ALL if isinstance(route, Endpoint) and route.streams
    } == STREAMING
    counted = Metrics()
    counted.answered("GET", "/events", 200, 3600.0)
    samples = [sample for family in counted.collect() for sample in family.samples]
    assert [one.value for one in samples if one.name == "headway_http_requests_total"] == [1]
    assert not [one for one in samples if one.name.startswith("headway_http_request_seconds")]
