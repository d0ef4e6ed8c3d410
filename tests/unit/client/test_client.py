"""The client against a real gateway: what goes over the wire arrives, and comes back as it was told."""

import asyncio
import re
from pathlib import Path

import httpx
import pytest

import headway.client
from headway import Headway, Turn
from headway.cli.jobs.remote import RemoteJobs
from headway.client import Client, ServerRefused, ServerUnavailable
from headway.gateway.endpoint import Endpoint
from headway.gateway.routes import ALL
from headway.model.errors import InvalidInput, JobNotFound, NotFound, QueueFull, SessionBusy
from headway.model.words import Mode, State
from headway.testing import virtual_time
from headway.wire.events import EventQuery
from headway.wire.lanes import LaneRequest, LanesQuery
from headway.wire.messages import MessageRequest
from headway.wire.nodes import NodesQuery
from headway.wire.outbox import LettersQuery
from headway.wire.output import OutputPiece, RunOver
from headway.wire.runs import RunsQuery
from headway.wire.sessions import QueueRequest, SessionsQuery
from headway.wire.tasks import BatchRequest, TaskItem, TaskRequest, TasksQuery
from tests.unit.client.calling import client_of

ODD = "agent:a/b:web%3Adm:42 ü?#"


def hw_with_echo(gate: asyncio.Event | None = None) -> Headway:
    hw = Headway()

    @hw.agent("echo")
    async def echo(turn: Turn) -> str:
        turn.emit("working ")
        if gate is not None and turn.text.startswith("hold"):
            await gate.wait()
        return f"echo: {turn.text}"

    return hw


def test_o5_every_route_has_its_call_and_every_call_its_route() -> None:
    """What HTTP can do, the client can: the source is read, so that a new route without a call is seen."""
    streams = {("GET", "/events"), ("GET", "/runs/{runId}/output"), ("GET", "/metrics")}
    routes = {(route.method, route.path) for route in ALL if isinstance(route, Endpoint)}
    folder = Path(headway.client.__file__).parent
    source = "\n".join(path.read_text(encoding="utf-8") for path in folder.glob("*.py"))
    calls = set(re.findall(r'ask\(\s*"([A-Z]+)",\s*"(/[^"]*)"', source))
    assert routes - calls <= streams
    assert calls <= routes


@virtual_time
async def test_t1_a_task_is_submitted_seen_and_listed() -> None:
    async with client_of(hw_with_echo()) as client:
        taken = await client.tasks.submit(TaskRequest(agent_id="echo", action="click", ref="e1"))
        over = await client.runs.wait(taken.task_id)
        assert (over.outcome.state, over.outcome.text) == (State.DONE, "echo: ")
        task = await client.tasks.get(taken.task_id)
        assert (task.action, task.ref, task.state) == ("click", "e1", State.DONE)
        page = await client.tasks.list(TasksQuery(agent_id="echo", state=State.DONE))
        assert [task.task_id for task in page.tasks] == [taken.task_id]
        assert (await client.tasks.stats()).queued == 0


@virtual_time
async def test_t5_a_batch_tells_of_each_item() -> None:
    async with client_of(hw_with_echo()) as client:
        items = (TaskItem(action="a"), TaskItem(action="b", deadline="1s"))
        answer = await client.tasks.batch(BatchRequest(agent_id="echo", tasks=items))
        assert (answer.submitted, len(answer.items)) == (2, 2)


@virtual_time
async def test_a_message_is_sent_and_its_run_watched() -> None:
    async with client_of(hw_with_echo()) as client:
        message = MessageRequest(agent_id="echo", text="hi", session=ODD, wait="5")
        answer = await client.send(message)
        assert answer.outcome is not None
        assert (answer.outcome.text, answer.session) == ("echo: hi", ODD)
        assert answer.run_id is not None
        news = [each async for each in client.runs.watch(answer.run_id)]
        assert isinstance(news[-1], RunOver)
        run = await client.runs.get(answer.run_id)
        assert (run.text, run.session) == ("hi", ODD)
        listed = await client.runs.list(RunsQuery(session=ODD))
        assert [run.run_id for run in listed.runs] == [answer.run_id]


@virtual_time
async def test_what_a_run_emits_comes_before_its_end() -> None:
    gate = asyncio.Event()
    async with client_of(hw_with_echo(gate)) as client:
        answer = await client.send(MessageRequest(agent_id="echo", text="hold", session="s"))
        assert answer.run_id is not None
        asyncio.get_running_loop().call_later(1, gate.set)
        news = [each async for each in client.runs.watch(answer.run_id)]
        assert [each.text for each in news if isinstance(each, OutputPiece)] == ["working "]
        assert isinstance(news[-1], RunOver)


@virtual_time
async def test_s9_a_session_with_an_odd_key_is_seen_set_and_stopped() -> None:
    gate = asyncio.Event()
    async with client_of(hw_with_echo(gate)) as client:
        held = await client.send(MessageRequest(agent_id="echo", text="hold", session=ODD))
        session = await client.sessions.get(ODD)
        assert session.running == (held.run_id,)
        listed = await client.sessions.list(SessionsQuery(agent_id="echo"))
        assert [each.key for each in listed.sessions] == [ODD]
        changed = await client.sessions.set_queue(QueueRequest(key=ODD, mode=Mode.COLLECT, cap=3))
        assert (changed.queue.mode, changed.queue.cap) == (Mode.COLLECT, 3)
        assert (await client.sessions.reset_queue(ODD)).queue.mode is None
        assert (await client.sessions.clear(ODD)).cleared == 0
        assert (await client.sessions.stop(ODD)).text == "1 running stopped"
        assert (await client.sessions.stop_all(ODD)).key == ODD


@virtual_time
async def test_l2_a_lane_is_changed_paused_and_cleared() -> None:
    async with client_of(hw_with_echo()) as client:
        lane = await client.lanes.set(LaneRequest(name="a/b", width=4, reserve=1))
        assert (lane.name, lane.width, lane.reserve) == ("a/b", 4, 1)
        assert (await client.lanes.pause("a/b")).paused
        assert not (await client.lanes.resume("a/b")).paused
        assert (await client.lanes.get("a/b")).width == 4
        assert (await client.lanes.clear("a/b")).cleared == 0
        assert "a/b" in {each.name for each in (await client.lanes.list(LanesQuery())).lanes}


@virtual_time
async def test_that_a_server_runs_no_such_agent_is_known() -> None:
    async with client_of(hw_with_echo()) as client:
        jobs = RemoteJobs(client, None)
        assert not await jobs.lacks("echo")
        assert await jobs.lacks("nobody")


@virtual_time
async def test_c13_a_job_is_added_changed_fired_and_removed() -> None:
    async with client_of(hw_with_echo()) as client:
        job = await client.jobs.add(
            "brief", "echo", cron="0 9 * * *", tz="Asia/Tokyo", text="news?",
            deliver={"channel": "web", "to": "42"}, misfire_window="2h",
        )  # fmt: skip
        assert (job.name, job.misfire_window_ms) == ("brief", 7_200_000)
        assert (await client.jobs.get("echo/brief")).id == job.id
        edited = await client.jobs.edit(job.id, every="10m", deliver=None, retries=2)
        assert (edited.deliver, edited.retries) == (None, 2)
        assert not (await client.jobs.pause(job.id)).enabled
        assert (await client.jobs.resume(job.id)).enabled
        assert await client.jobs.run(job.id, only_if_due=True) is None
        run_id = await client.jobs.run(job.id)
        assert run_id is not None
        assert (await client.runs.wait(run_id)).outcome.text == "echo: news?"
        assert [entry.run_id for entry in (await client.jobs.log(job.id)).entries] == [run_id]
        assert len((await client.jobs.log()).entries) == 1
        assert len((await client.jobs.next(job.id, 3)).firings) == 3
        assert (await client.jobs.status()).jobs == 1
        assert [each.id for each in (await client.jobs.export()).jobs] == [job.id]
        assert (await client.jobs.remove(job.id)).removed == job.id
        with pytest.raises(JobNotFound):
            await client.jobs.get(job.id)


@virtual_time
async def test_c12_a_file_of_jobs_is_taken_in() -> None:
    async with client_of(hw_with_echo()) as client:
        crontab = "0 6 * * * backup --all\n"
        loaded = await client.jobs.load(crontab, agent="echo", form="crontab")
        assert len(loaded.added) == 1


@virtual_time
async def test_h1_a_heartbeat_is_set_and_its_checklist_written() -> None:
    async with client_of(hw_with_echo()) as client:
        told = await client.heartbeats.set(
            "echo", every="20m", hours="08:00-22:00", tz="Asia/Tokyo", ack_max_chars=10,
            target={"channel": "web", "to": "42"},
        )  # fmt: skip
        assert (told.every, told.ack_max_chars) == ("20m", 10)
        assert told.hours is not None
        assert (told.hours.hours, told.hours.tz) == ("08:00-22:00", "Asia/Tokyo")
        await client.heartbeats.set_checklist("echo", "- look\n")
        assert (await client.heartbeats.checklist("echo")).checklist == "- look\n"
        assert [each.agent_id for each in (await client.heartbeats.list()).heartbeats] == ["echo"]
        assert not (await client.heartbeats.pause("echo")).enabled
        assert (await client.heartbeats.resume("echo")).enabled
        assert (await client.heartbeats.wake("echo")).wake_at is not None
        assert (await client.heartbeats.log("echo")).cursor is None
        assert (await client.heartbeats.get("echo")).every == "20m"
        assert (await client.heartbeats.remove("echo")).removed == "echo"


@virtual_time
async def test_the_server_itself_can_be_asked() -> None:
    async with client_of(hw_with_echo()) as client:
        assert (await client.server.health()).status == "ok"
        assert (await client.server.readiness()).ready
        assert len((await client.server.nodes(NodesQuery(all=True))).nodes) == 1
        assert (await client.outbox.list(LettersQuery(state="waiting"))).letters == ()


@virtual_time
async def test_events_that_are_remembered_are_heard() -> None:
    async with client_of(hw_with_echo()) as client:
        await client.send(MessageRequest(agent_id="echo", text="hi", session="s", wait="5"))
        query = EventQuery(event=("RunFinished",), last=5, follow=False)
        heard = [each async for each in client.events(query)]
        assert [each.data["session"] for each in heard] == ["s"]
        assert heard[0].event == "RunFinished"


class TestErrors:
    """What the server refuses comes back as the error that the library itself raises."""

    @virtual_time
    async def test_t2_a_wrong_field_is_named(self) -> None:
        async with client_of(hw_with_echo()) as client:
            with pytest.raises(InvalidInput) as refused:
                await client.tasks.submit(TaskRequest(agent_id="echo", action="a", deadline="soon"))
            assert refused.value.field == "deadline"

    @virtual_time
    async def test_an_unknown_run_is_not_found(self) -> None:
        async with client_of(hw_with_echo()) as client:
            with pytest.raises(NotFound) as refused:
                await client.runs.get("nosuch")
            assert refused.value.run_id == "nosuch"

    @virtual_time
    async def test_a_busy_session_that_rejects_says_so(self) -> None:
        gate = asyncio.Event()
        async with client_of(hw_with_echo(gate)) as client:
            await client.send(MessageRequest(agent_id="echo", text="hold", session="s"))
            again = MessageRequest(agent_id="echo", text="me", session="s", mode=Mode.REJECT)
            with pytest.raises(SessionBusy) as refused:
                await client.send(again)
            assert refused.value.outcome.state is State.REJECTED
            gate.set()

    @virtual_time
    async def test_f1_a_full_queue_says_so(self) -> None:
        gate = asyncio.Event()
        hw = hw_with_echo(gate)
        async with client_of(hw) as client:
            hw.set_limits(max_queue=1, max_inflight=1)
            hw.pause_lane("main")
            await client.tasks.submit(TaskRequest(agent_id="echo", action="a"))
            with pytest.raises(QueueFull):
                await client.tasks.submit(TaskRequest(agent_id="echo", action="b"))

    @virtual_time
    async def test_o4_a_wrong_token_is_refused_with_what_to_do(self) -> None:
        hw = hw_with_echo()
        async with client_of(hw, token="hw_no_token") as client:
            await hw.tokens.create("one", ["read"])
            with pytest.raises(ServerRefused, match="HEADWAY_TOKEN") as refused:
                await client.tasks.stats()
            assert (refused.value.status, refused.value.code) == (401, "unauthorized")


class TestTryingAgain:
    """Only what reads is asked again; the server says when."""

    @staticmethod
    def flaky(answers: list[httpx.Response]) -> tuple[Client, list[str]]:
        asked: list[str] = []

        def answer(request: httpx.Request) -> httpx.Response:
            asked.append(request.method)
            return answers.pop(0)

        return Client("http://server", transport=httpx.MockTransport(answer)), asked

    @staticmethod
    def away() -> httpx.Response:
        body = {"error": "draining", "code": "draining", "retryable": True, "details": {}}
        return httpx.Response(503, json=body, headers={"retry-after": "3"})

    @virtual_time
    async def test_t2_a_read_is_tried_again_after_the_time_that_was_said(self) -> None:
        client, asked = self.flaky([self.away(), httpx.Response(200, json={"status": "ok"})])
        began_at = asyncio.get_running_loop().time()
        assert (await client.server.health()).status == "ok"
        assert asked == ["GET", "GET"]
        assert asyncio.get_running_loop().time() - began_at == pytest.approx(3)

    @virtual_time
    async def test_a_submission_is_never_tried_again_by_itself(self) -> None:
        client, asked = self.flaky([self.away()])
        with pytest.raises(ServerUnavailable) as refused:
            await client.tasks.submit(TaskRequest(agent_id="echo", action="a"))
        assert (asked, refused.value.retry_after_s) == (["POST"], 3.0)

    @virtual_time
    async def test_it_gives_up_some_time(self) -> None:
        client, asked = self.flaky([self.away() for _ in range(10)])
        with pytest.raises(ServerUnavailable):
            await client.server.health()
        assert len(asked) == 4
