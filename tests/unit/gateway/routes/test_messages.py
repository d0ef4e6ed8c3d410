"""Messages over HTTP: chat commands first, then runs; with `wait` the outcome (S-5 to S-9)."""

import asyncio

import httpx

from headway import Headway, Route, Sender, Settings
from headway.gateway import build_app
from headway.model.server import ServerSettings
from headway.model.time import SECOND
from headway.testing import virtual_time
from tests.unit.gateway.calling import client, opened, passes, served
from tests.unit.runtime.worlds import Gate, Recorder, quick_queue, with_agents

CHAT = {"agentId": "a", "channel": "web", "peer": "42", "sender": {"id": "ann"}}
KEY = "agent:a:web:dm:42"


async def say(
    http: httpx.AsyncClient, text: str, wait: str = "", **fields: object
) -> httpx.Response:
    params = {"wait": wait} if wait else {}
    return await http.post("/messages", params=params, json={**CHAT, "text": text, **fields})


@virtual_time
async def test_a_message_is_taken_and_its_outcome_can_be_waited_for() -> None:
    async with served(with_agents(Recorder(takes=5), queue=quick_queue())) as http:
        taken = await say(http, "hello")
        assert taken.status_code == 202
        told = taken.json()
        assert (told["session"], told["command"], told["outcome"]) == (KEY, False, None)
        assert taken.headers["location"] == f"/runs/{told['runId']}"
        late = await say(http, "and?", wait="8")
        assert (late.status_code, late.json()["outcome"]) == (202, None)
        done = await say(http, "now?", wait="30s")
        assert done.status_code == 200
        assert (done.json()["state"], done.json()["outcome"]["text"]) == ("done", "re: now?")


@virtual_time
async def test_a_wait_is_never_longer_than_the_server_allows() -> None:
    async with served(
        with_agents(Recorder(takes=90)), ServerSettings(wait_limit=10 * SECOND)
    ) as http:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        assert (await say(http, "x", wait="100000")).status_code == 202
        assert loop.time() - began_s == 10


@virtual_time
async def test_a_wait_that_cannot_be_understood_is_refused_before_anything_is_taken() -> None:
    hw = with_agents(Recorder())
    async with served(hw) as http:
        for wait in ("soon", "-1", "30\n"):
            wrong = await say(http, "x", wait=wait)
            assert (wrong.status_code, wrong.json()["details"]["field"]) == (400, "wait")
        assert not (await hw.runs()).runs


@virtual_time
async def test_when_the_server_ends_who_waits_is_told_that_it_takes_longer() -> None:
    hw = with_agents(Gate())
    async with hw:
        gateway = build_app(hw)
        async with client(gateway) as http, gateway, asyncio.TaskGroup() as group:
            waiting = group.create_task(say(http, "x", wait="60"))
            await passes(2 * SECOND)
            gateway.desk.close()
            assert (await waiting).status_code == 202
        await hw.close(0)


@virtual_time
async def test_s7_a_burst_on_a_channel_is_one_turn() -> None:
    recorder = Recorder()
    async with served(with_agents(recorder)) as http:
        one, two = await asyncio.gather(say(http, "one", wait="60"), say(http, "two", wait="60"))
        assert recorder.started == ["one\ntwo"]
        assert one.json()["outcome"]["text"] == two.json()["outcome"]["text"] == "re: one\ntwo"


@virtual_time
async def test_s8_a_message_that_comes_twice_is_one_run() -> None:
    recorder = Recorder()
    async with served(with_agents(recorder, queue=quick_queue())) as http:
        first = await say(http, "x", messageId="m1", wait="60")
        again = await say(http, "x", messageId="m1", wait="60")
        assert again.json()["runId"] == first.json()["runId"]
        by_key = [await say(http, "y", idempotencyKey="k") for _ in range(2)]
        assert by_key[0].json()["runId"] == by_key[1].json()["runId"]


@virtual_time
async def test_s9_commands_are_answered_with_what_they_did() -> None:
    async with served(with_agents(Gate(), queue=quick_queue())) as http:
        nothing = await say(http, " /STOP@bot ")
        assert nothing.status_code == 200
        assert (nothing.json()["command"], nothing.json()["reply"]) == (True, "nothing to stop")
        assert nothing.json()["runId"] is None
        assert "location" not in nothing.headers
        await say(http, "one")
        await say(http, "two")
        stopped = await say(http, "/stopall")
        assert stopped.json()["reply"] == "1 running and 1 waiting stopped"
        options = await say(http, "/queue collect cap:3")
        assert "collect" in options.json()["reply"]
        wrong = await say(http, "/queue nonsense")
        assert (wrong.status_code, wrong.json()["command"]) == (200, True)
        plain = await say(http, "/unknown thing")
        assert (plain.status_code, plain.json()["command"]) == (202, False)
        await say(http, "/stopall")


@virtual_time
async def test_reject_is_a_conflict_and_a_full_queue_comes_back_later() -> None:
    async with served(with_agents(Gate(), queue=quick_queue())) as http:
        await say(http, "one")
        busy = await say(http, "two", mode="reject")
        assert (busy.status_code, busy.json()["code"]) == (409, "rejected_busy")
        await say(http, "three", cap=1, drop="new")
        full = await say(http, "four", cap=1, drop="new")
        assert (full.status_code, full.json()["code"]) == (429, "queue_full")
        assert int(full.headers["retry-after"]) >= 1
        await say(http, "/stopall", sentAt="2030-01-01T00:00:00Z")
        stale = await say(http, "late", sentAt="2029-12-31T23:59:59Z")
        assert (stale.status_code, stale.json()["code"]) == (409, "stale")


@virtual_time
async def test_everything_that_was_said_reaches_the_turn() -> None:
    recorder = Recorder()
    async with served(with_agents(recorder, queue=quick_queue())) as http:
        file = {"name": "a.txt", "mediaType": "text/plain", "url": "https://x/a"}
        await say(
            http,
            "look",
            wait="60",
            account="bot",
            thread="t",
            sender={"id": "ann", "authority": "owner"},
            messageId="9",
            sentAt="2026-11-15T10:30:00+01:00",
            attachments=[file],
            priority=2,
            lane="cron",
        )
        turn = recorder.turns[0]
        assert turn.attachments[0].url == "https://x/a"
        assert turn.route == Route("web", account="bot", peer="42", thread="t")
        assert turn.sender == Sender("ann", "owner")
        run = (await http.get("/runs")).json()["runs"][0]
        assert run["route"] == {"channel": "web", "to": "42", "thread": "t", "account": "bot"}
        assert run["session"] == "agent:a:web:account:bot:dm:42:thread:t"
        assert (run["sender"], run["messageId"], run["lane"]) == ("ann", "9", "cron")
        assert run["attachments"] == [file]


@virtual_time
async def test_a_place_needs_its_channel_and_a_session_needs_none() -> None:
    recorder = Recorder()
    async with served(with_agents(recorder)) as http:
        lost = await http.post("/messages", json={"agentId": "a", "peer": "42"})
        assert (lost.status_code, lost.json()["details"]["field"]) == (400, "peer")
        named = await http.post(
            "/messages?wait=9", json={"agentId": "a", "session": "s", "text": "hi"}
        )
        assert (named.status_code, named.json()["session"]) == (200, "s")
        alone = await http.post("/messages", json={"agentId": "a", "text": "/stop"})
        assert alone.json()["session"] == f"run:{alone.json()['runId']}"
        unknown = await http.post("/messages", json={"agentId": "b", "text": "hi"})
        assert unknown.status_code == 404
        assert unknown.json()["details"]["field"] == "agentId"


@virtual_time
async def test_o4_a_token_of_one_agent_cannot_stop_the_session_of_another() -> None:
    gate = Gate()
    hw = with_agents(gate, gate, queue=quick_queue())
    async with opened(hw) as gateway:
        await hw.submit("b", "busy", session="shared")
        _, bound = await hw.tokens.create("bound", ["submit"], agent="a")
        async with client(gateway, token=bound) as http:
            stop = {"agentId": "a", "session": "shared", "text": "/stopall"}
            assert (await http.post("/messages", json=stop)).status_code in {403, 404}
            other = await http.post("/messages", json={**CHAT, "agentId": "b", "text": "x"})
            assert other.status_code == 403
        assert len(hw.sessions()["shared"].running) == 1
        gate.open()


INTO = {"text": "mine now", "mode": "interrupt"}


@virtual_time
async def test_o4_a_token_of_one_agent_cannot_send_into_the_session_of_another() -> None:
    """What interrupts ends all that the session is at, whoever asked for it."""
    gate = Gate()
    hw = with_agents(gate, gate, queue=quick_queue())
    async with opened(hw) as gateway:
        theirs = [await hw.submit("b", "busy", session="shared") for _ in range(2)]
        await hw.submit("b", "busy", session="agent:b:web:dm:1")
        _, bound = await hw.tokens.create("bound", ["control"], agent="a")
        async with client(gateway, token=bound) as http:
            for session in ("shared", "agent:b:web:dm:1", "agent:b:web:dm:unused"):
                into = {"agentId": "a", "session": session}
                job = {**into, "name": "j", "every": "1h", "text": "x"}
                tasks = [{"action": "x"}, {"action": "x", "session": session}]
                for path, body in (
                    ("/messages", {**into, **INTO}),
                    ("/tasks", {**into, "action": "x"}),
                    ("/tasks/batch", {"agentId": "a", "tasks": tasks}),
                    ("/jobs", job),
                ):
                    answer = await http.post(path, json=body)
                    assert answer.status_code == 404, (path, session, answer.text)
            hourly = {"agentId": "a", "name": "j", "every": "1h", "text": "x", "session": "job"}
            new = await http.post("/jobs", json=hourly)
            assert new.status_code == 201
            moved = await http.patch(f"/jobs/{new.json()['id']}", json={"session": "shared"})
            assert moved.status_code == 404
        assert [await handle.state() for handle in theirs] == ["running", "queued"]
        assert [page.run.agent for page in (await hw.runs()).runs] == ["b"] * 3
        gate.open()


@virtual_time
async def test_o4_a_session_that_is_an_agents_own_or_nobodys_takes_what_its_token_sends() -> None:
    hw = with_agents(Recorder(takes=1), Recorder(takes=1), queue=quick_queue())
    async with opened(hw) as gateway:
        await hw.send("b", "x", session="was theirs")
        _, bound = await hw.tokens.create("bound", ["submit"], agent="a")
        async with client(gateway, token=bound) as http:
            for session in ("new", "new", "agent:a:web:dm:1", "agent:a:web:dm:1"):
                body = {"agentId": "a", "session": session, **INTO}
                assert (await http.post("/messages", json=body)).status_code == 202
                await passes(3 * SECOND)
            for text, status in (("/weather", 202), ("/status", 200), ("/stop", 200)):
                body = {"agentId": "a", "session": f"new for {text}", "text": text}
                assert (await http.post("/messages", json=body)).status_code == status
            body = {"agentId": "a", "session": "was theirs", "action": "x"}
            assert (await http.post("/tasks", json=body)).status_code == 404


@virtual_time
async def test_who_leaves_while_he_waits_takes_up_no_place() -> None:
    hw = with_agents(Gate())
    async with opened(hw) as gateway:
        left = asyncio.Event()
        said = [{"type": "http.request", "body": b'{"agentId":"a","text":"x"}'}]

        async def receive() -> dict[str, object]:
            if said:
                return said.pop()  # type: ignore[return-value]
            await left.wait()
            return {"type": "http.disconnect"}

        async def send(message: object) -> None:
            pass

        scope = {
            "type": "http",
            "method": "POST",
            "path": "/messages",
            "raw_path": b"/messages",
            "query_string": b"wait=60",
            "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
            "client": ("127.0.0.1", 4321),
        }

        async def serve() -> None:
            await gateway.app(scope, receive, send)  # type: ignore[arg-type]

        async with asyncio.TaskGroup() as group:
            group.create_task(serve())
            await passes(2 * SECOND)
            assert len(gateway.desk.waits) == 1
            left.set()
            await passes(SECOND)
            assert not gateway.desk.waits
        assert len((await hw.runs(state="running")).runs) == 1, "what was sent goes on"


@virtual_time
async def test_the_end_of_a_wait_and_of_the_server_may_fall_together() -> None:
    hw = with_agents(Gate())
    async with hw:
        gateway = build_app(hw)
        async with client(gateway) as http, gateway, asyncio.TaskGroup() as group:
            waiting = group.create_task(say(http, "x", wait="5", session="s"))
            await passes(SECOND)
            (timeout,) = gateway.desk.waits
            closed: list[bool] = []

            def close() -> None:
                assert timeout.expired()
                gateway.desk.close()
                closed.append(True)

            # In the same turn of the loop as the end of the wait, and right behind it.
            asyncio.get_running_loop().call_at((timeout.when() or 0) + 1e-12, close)
        assert closed
        assert waiting.result().status_code == 202


@virtual_time
async def test_l5_a_draining_server_says_when_to_come_back() -> None:
    recorder = Recorder(takes=10)
    hw = Headway(settings=Settings(queue=quick_queue()))
    hw.agent("a")(recorder)
    async with served(hw) as http, asyncio.TaskGroup() as group:
        await say(http, "long")
        await passes(SECOND)
        draining = group.create_task(hw.drain("30s"))
        await passes(SECOND)
        ready = await http.get("/readyz")
        assert (ready.status_code, ready.json()) == (503, {"ready": False, "reasons": ["draining"]})
        for path, body in (("/messages", CHAT), ("/tasks", {"agentId": "a", "action": "x"})):
            refused = await http.post(path, json=body)
            assert (refused.status_code, refused.json()["code"]) == (503, "draining")
            assert int(refused.headers["retry-after"]) >= 1
            assert refused.json()["retryable"] is True
        await draining
