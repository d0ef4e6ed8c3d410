"""Runs over HTTP: every kind of run, why it waits, and its cancel."""

from headway.testing import virtual_time
from tests.unit.gateway.calling import passes, served
from tests.unit.runtime.worlds import Gate, Recorder, quick_queue, with_agents


@virtual_time
async def test_runs_are_listed_by_what_was_asked_for() -> None:
    hw = with_agents(Recorder(), Recorder(), queue=quick_queue())
    async with served(hw) as http:
        for agent, session in (("a", "s1"), ("a", "s2"), ("b", "s1")):
            await (await hw.submit(agent, "hi", session=session)).wait()
        await http.post("/tasks", json={"agentId": "a", "action": "x"})
        await passes(5_000_000)

        async def listed(**params: str) -> list[str]:
            page = (await http.get("/runs", params=params)).json()
            return [f"{run['agentId']}/{run['session']}" for run in page["runs"]]

        assert await listed(session="s1") == ["b/s1", "a/s1"]
        assert await listed(agentId="a", source="message") == ["a/s2", "a/s1"]
        assert len(await listed(source="task")) == 1
        assert len(await listed(state="done")) == 4
        assert len(await listed(limit="2")) == 2
        task = (await http.get("/runs?source=task")).json()["runs"][0]
        assert task["action"] == "x"


@virtual_time
async def test_x1_why_a_run_waits_in_words_and_for_programs() -> None:
    gate = Gate()
    hw = with_agents(gate)
    async with served(hw) as http:
        first = await hw.submit("a", "one", session="s")
        second = await hw.submit("a", "two", session="s")
        why = (await http.get(f"/runs/{second.id}/why")).json()
        assert (why["rule"], why["by"], why["place"]) == ("session_busy", first.id, 0)
        assert "busy with run" in why["text"]
        nothing = (await http.get(f"/runs/{first.id}/why")).json()
        assert (nothing["rule"], nothing["state"]) == (None, "running")
        gate.open()


@virtual_time
async def test_a_run_is_cancelled_once() -> None:
    hw = with_agents(Gate())
    async with served(hw) as http:
        handle = await hw.submit("a", "one", session="s")
        cancelled = await http.post(f"/runs/{handle.id}/cancel")
        assert cancelled.status_code == 200
        outcome = await handle.wait()
        assert (outcome.state, outcome.reason) == ("cancelled", "stopped")
        await passes(1)
        run = (await http.get(f"/runs/{handle.id}")).json()
        assert (run["state"], run["outcome"]["reason"]) == ("cancelled", "stopped")
        assert (await http.post(f"/runs/{handle.id}/cancel")).status_code == 409


@virtual_time
async def test_what_is_no_task_is_not_found_among_tasks() -> None:
    hw = with_agents(Recorder())
    async with served(hw) as http:
        handle = await hw.submit("a", "one", session="s")
        await handle.wait()
        assert (await http.get(f"/tasks/{handle.id}")).status_code == 404
        assert (await http.get(f"/runs/{handle.id}")).status_code == 200
