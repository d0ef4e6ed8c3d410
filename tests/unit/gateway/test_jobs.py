"""Jobs over HTTP: list, get, create, update, delete, toggle, run, runs, status (C-13)."""

import asyncio

import httpx
import pytest

from headway import Headway, Turn
from headway.model.payload import Execute
from headway.model.time import SECOND
from headway.testing import virtual_time
from tests.unit.gateway.asking import asked_by, bearing, path, refusal
from tests.unit.gateway.calling import opened, passes, served

BRIEF = {
    "name": "morning brief",
    "agentId": "support",
    "cron": "0 9 * * 1-5",
    "tz": "Europe/Paris",
    "text": "What is new?",
}


def headway() -> Headway:
    hw = Headway()

    @hw.agent("support")
    async def support(turn: Turn) -> str:
        return f"heard {turn.text}"

    return hw


async def make(http: httpx.AsyncClient, **fields: object) -> dict[str, object]:
    answer = await http.post("/jobs", json={**BRIEF, **fields})
    assert answer.status_code == 201, answer.text
    made: dict[str, object] = answer.json()
    return made


def field_of(answer: httpx.Response) -> str:
    assert refusal(answer)[0] == 400
    named: str = answer.json()["details"]["field"]
    return named


@virtual_time
async def test_c13_a_job_in_short_reads_in_full() -> None:
    async with served(headway()) as http:
        answer = await http.post("/jobs", json={**BRIEF, "deliver": {"channel": "web", "to": "7"}})
        assert answer.status_code == 201
        job = answer.json()
        assert answer.headers["location"] == f"/jobs/{job['id']}"
        assert job["schedule"] == {"kind": "cron", "expr": "0 9 * * 1-5", "tz": "Europe/Paris"}
        assert job["payload"] == {"kind": "message", "text": "What is new?"}
        assert job["deliver"] == {"channel": "web", "to": "7"}
        assert job["state"]["nextRunAt"] is not None
        assert {"lane", "session", "overlap", "misfireWindowMs"} & job.keys() == set()
        assert (await http.get(f"/jobs/{job['id']}")).json() == job


@virtual_time
async def test_c12_what_an_export_says_of_a_job_makes_it_again() -> None:
    async with served(headway()) as http:
        made = await make(
            http,
            stagger="30s",
            timeout="5m",
            session="job",
            overlap="skip",
            misfire="all",
            retries=2,
            gate={"function": "has_mail"},
        )
        exported = (await http.get("/jobs/export")).json()["jobs"]
        assert exported == [{key: value for key, value in made.items() if key != "state"}]
        again = {
            key: value
            for key, value in exported[0].items()
            if key not in {"id", "createdAtMs", "name"}
        }
        copy = (await http.post("/jobs", json={**again, "name": "copy"})).json()
        apart = {"id", "name", "createdAtMs", "state"}
        assert {key: value for key, value in copy.items() if key not in apart} == {
            key: value for key, value in made.items() if key not in apart
        }


@virtual_time
async def test_a_job_is_named_by_its_agent_and_name_whatever_is_in_them() -> None:
    async with served(headway()) as http:
        made = await make(http, name="a/b ü%2F?")
        found = await http.get(path("jobs", "support/a/b ü%2F?"))
        assert found.json()["id"] == made["id"]


@virtual_time
async def test_c13_a_patch_changes_what_it_names_and_nothing_else() -> None:
    async with served(headway()) as http:
        made = await make(http, timeout="5m", lane="slow")
        patched = await http.patch(f"/jobs/{made['id']}", json={"cron": "0 8 * * *", "lane": None})
        job = patched.json()
        assert job["schedule"] == {"kind": "cron", "expr": "0 8 * * *", "tz": "Europe/Paris"}
        assert "lane" not in job
        assert (job["timeoutMs"], job["payload"]) == (300_000, made["payload"])


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"crn": "0 9 * * *"}, "crn"),
        ({"id": "mine"}, "id"),
        ({"cron": "*/0 * * * *"}, "cron"),
        ({"cron": "99 * * * *"}, "cron"),
        ({"schedule": {"kind": "cron", "expr": "0 0 31 2 *"}}, "schedule.expr"),
        ({"schedule": {"kind": "every", "everyMs": 0}}, "schedule.everyMs"),
        ({"every": "0s"}, "every"),
        ({"tz": "Europe/Pariss"}, "tz"),
        ({"at": "1999-12-31"}, "at"),
        ({"payload": {"kind": "message", "text": "  "}}, "payload.text"),
        ({"text": "a", "function": "b"}, "function"),
        ({"text": "a", "payload": {"kind": "message", "text": "b"}}, "payload"),
        ({"schedule": {"kind": "cron", "expr": "0 9 * * *"}, "tz": "UTC"}, "tz"),
        ({"gate": {"function": "a", "command": ["b"]}}, "gate"),
    ],
)
def test_c3_what_is_wrong_with_a_job_is_named(said: dict[str, object], field: str) -> None:
    @virtual_time
    async def ask() -> None:
        async with served(headway()) as http:
            made = await make(http)
            refused = await http.patch(f"/jobs/{made['id']}", json=said)
            assert field_of(refused) == field
            assert (await http.get(f"/jobs/{made['id']}")).json() == made

    ask()


@pytest.mark.parametrize(
    "command", ["a | b", "a > b", "echo $HOME", "a; b", "  ", "a\nb", "`a`", "a *"]
)
def test_w1_what_only_a_shell_could_read_is_no_command(command: str) -> None:
    @virtual_time
    async def refused() -> None:
        async with served(headway()) as http:
            said = {"name": "n", "agentId": "support", "every": "1h", "command": command}
            assert field_of(await http.post("/jobs", json=said)) == "command"

    refused()


@virtual_time
async def test_t2_a_job_without_a_schedule_or_a_payload_is_refused() -> None:
    async with served(headway()) as http:
        bare = {"name": "x", "agentId": "support"}
        assert field_of(await http.post("/jobs", json={**bare, "text": "a"})) == "schedule"
        assert field_of(await http.post("/jobs", json={**bare, "every": "1h"})) == "text"
        missing = await http.post("/jobs", json={"name": "x", "every": "1h", "text": "a"})
        assert refusal(missing) == (400, "missing_field")


@virtual_time
async def test_c1_a_name_that_is_taken_is_a_conflict() -> None:
    async with served(headway()) as http:
        await make(http)
        other = await make(http, name="other")
        assert refusal(await http.post("/jobs", json=BRIEF)) == (409, "conflict")
        renamed = await http.patch(f"/jobs/{other['id']}", json={"name": BRIEF["name"]})
        assert refusal(renamed) == (409, "conflict")
        kept = await http.post("/jobs", json={**BRIEF, "name": "heartbeat"})
        assert field_of(kept) == "name"


@virtual_time
async def test_jobs_are_listed_by_agent_and_name_a_page_at_a_time() -> None:
    async with served(headway()) as http:
        for agent, name in (("support", "b"), ("sales", "z"), ("support", "a")):
            await make(http, agentId=agent, name=name)
        await make(http, agentId="support", name="c", enabled=False)
        seen: list[str] = []
        params: dict[str, str | int] = {"limit": 2}
        while True:
            page = (await http.get("/jobs", params=params)).json()
            seen += [job["name"] for job in page["jobs"]]
            if page["cursor"] is None:
                break
            params["cursor"] = page["cursor"]
        assert seen == ["z", "a", "b", "c"]
        idle = (await http.get("/jobs", params={"enabled": "false"})).json()
        assert [job["name"] for job in idle["jobs"]] == ["c"]
        sales = (await http.get("/jobs", params={"agentId": "sales"})).json()
        assert [job["name"] for job in sales["jobs"]] == ["z"]
        wrong = await http.get("/jobs", params={"cursor": "nonsense"})
        assert field_of(wrong) == "cursor"


@virtual_time
async def test_c10_pause_and_resume_toggle_it() -> None:
    async with served(headway()) as http:
        made = await make(http)
        paused = (await http.post(f"/jobs/{made['id']}/pause")).json()
        assert (paused["enabled"], paused["state"]["nextRunAt"]) == (False, None)
        resumed = (await http.post(f"/jobs/{made['id']}/resume")).json()
        assert resumed == made


@virtual_time
async def test_a_job_whose_only_time_has_passed_cannot_be_resumed() -> None:
    hw = headway()
    async with served(hw) as http:
        body = {"name": "once", "agentId": "support", "at": "in 1m", "text": "x"}
        made = (await http.post("/jobs", json={**body, "deleteAfterRun": False})).json()
        await asyncio.sleep(120)
        await http.post(f"/jobs/{made['id']}/pause")
        for answer in (
            await http.post(f"/jobs/{made['id']}/resume"),
            await http.patch(f"/jobs/{made['id']}", json={"enabled": True}),
        ):
            assert refusal(answer) == (409, "conflict")


@virtual_time
async def test_c10_a_manual_run_is_made_now_and_can_be_looked_at() -> None:
    hw = headway()
    async with served(hw) as http:
        made = await make(http)
        fired = await http.post(f"/jobs/{made['id']}/run")
        assert fired.status_code == 202
        run_id = fired.json()["runId"]
        assert fired.headers["location"] == f"/runs/{run_id}"
        await asyncio.sleep(1)
        log = (await http.get(f"/jobs/{made['id']}/runs")).json()
        (entry,) = log["entries"]
        assert (entry["runId"], entry["fired"]) == (run_id, "manual")
        assert entry["outcome"]["text"] == "heard What is new?"
        assert (await http.get("/jobs/runs")).json() == log
        idle = await http.post(f"/jobs/{made['id']}/run", json={"onlyIfDue": True})
        assert (idle.status_code, idle.json()) == (200, {"runId": None})


@virtual_time
async def test_c11_the_log_is_paged_and_outlives_its_job() -> None:
    hw = headway()
    async with served(hw) as http:
        body = {"name": "often", "agentId": "support", "every": "1m", "text": "x"}
        made = (await http.post("/jobs", json=body)).json()
        await asyncio.sleep(330)
        assert (await http.delete(f"/jobs/{made['id']}")).json() == {"removed": made["id"]}
        numbers: list[int] = []
        params: dict[str, str | int] = {"limit": 2}
        while True:
            page = (await http.get(f"/jobs/{made['id']}/runs", params=params)).json()
            numbers += [entry["number"] for entry in page["entries"]]
            if page["cursor"] is None:
                break
            params["cursor"] = page["cursor"]
        assert len(numbers) == 5
        assert numbers == sorted(numbers, reverse=True)
        assert refusal(await http.get("/jobs/unheard/runs")) == (404, "job_not_found")


@virtual_time
async def test_c4_the_next_firings_say_what_is_odd_about_them() -> None:
    async with served(headway()) as http:
        made = await make(http, name="night", cron="30 2 * * *", tz="America/New_York")
        shown = (await http.get(f"/jobs/{made['id']}/next", params={"count": 366})).json()
        assert shown["schedule"] == "30 2 * * * (America/New_York)"
        notes = {firing["note"] for firing in shown["firings"]} - {""}
        assert any("does not exist" in note for note in notes)
        utc = (await http.get(f"/jobs/{made['id']}/next", params={"tz": "UTC"})).json()
        assert {firing["zone"] for firing in utc["firings"]} == {"UTC"}
        assert len(utc["firings"]) == 5


@virtual_time
async def test_c13_status_counts_the_jobs() -> None:
    async with served(headway()) as http:
        await make(http)
        await make(http, name="idle", enabled=False)
        await make(http, name="z", agentId="sales")
        status = (await http.get("/jobs/status")).json()
        assert (status["jobs"], status["enabled"], status["failing"]) == (3, 2, 0)
        assert status["nextRunAt"] is not None
        sales = (await http.get("/jobs/status", params={"agentId": "sales"})).json()
        assert sales["jobs"] == 1


@virtual_time
async def test_a_heartbeat_is_no_job_here() -> None:
    hw = headway()
    hw.heartbeat("support", prompt="look")
    async with served(hw) as http:
        heartbeat = await hw.heartbeats.get("support")
        for method in ("GET", "DELETE"):
            refused = await http.request(method, f"/jobs/{heartbeat.id}")
            assert refusal(refused) == (404, "job_not_found")
        assert (await http.get("/jobs")).json()["jobs"] == []


EVERYTHING_OF_A_JOB = (
    ("GET", "", None),
    ("PATCH", "", {"text": "y"}),
    ("POST", "/pause", None),
    ("POST", "/resume", None),
    ("POST", "/run", None),
    ("GET", "/runs", None),
    ("GET", "/next", None),
    ("DELETE", "", None),
)


@virtual_time
async def test_o4_a_token_for_one_agent_sees_only_its_jobs() -> None:
    hw = headway()
    async with opened(hw) as gateway, bearing(gateway, hw, "control", agent="support") as http:
        mine = await hw.jobs.add("mine", "support", every="1h", text="x")
        theirs = await hw.jobs.add("theirs", "sales", every="1h", text="x")
        listed = (await http.get("/jobs")).json()
        assert [job["name"] for job in listed["jobs"]] == ["mine"]
        assert (await http.get("/jobs/status")).json()["jobs"] == 1
        exported = (await http.get("/jobs/export")).json()["jobs"]
        assert [job["name"] for job in exported] == ["mine"]
        for method, rest, body in EVERYTHING_OF_A_JOB:
            refused = await http.request(method, f"/jobs/{theirs.id}{rest}", json=body)
            assert refusal(refused) == (404, "job_not_found")
            answer = await http.request(method, f"/jobs/{mine.id}{rest}", json=body)
            assert answer.is_success, answer.text
        assert (await hw.jobs.get(theirs.id)).enabled
        gone = await http.get(f"/jobs/{mine.id}/runs")
        assert refusal(gone) == (404, "job_not_found")
        for answer in (
            await http.get("/jobs", params={"agentId": "sales"}),
            await http.get("/jobs/runs"),
            await http.post("/jobs", json={**BRIEF, "agentId": "sales"}),
        ):
            assert refusal(answer) == (403, "forbidden")


@virtual_time
async def test_o4_a_token_cannot_give_its_job_to_another_agent() -> None:
    async with asked_by(headway(), "control", agent="support") as http:
        made = await make(http)
        moved = await http.patch(f"/jobs/{made['id']}", json={"agentId": "sales"})
        assert refusal(moved) == (403, "forbidden")


@virtual_time
async def test_o4_a_command_needs_admin_for_it_runs_a_program() -> None:
    async with asked_by(headway(), "control") as http:
        made = await make(http)
        bare = {"name": "x", "agentId": "command", "every": "1h"}
        for body in (
            {**bare, "command": "backup --all"},
            {**bare, "command": ["backup"]},
            {**bare, "payload": {"kind": "command", "argv": ["backup"]}},
            {**bare, "text": "x", "gate": {"command": ["true"]}},
        ):
            assert refusal(await http.post("/jobs", json=body)) == (403, "forbidden")
        patched = await http.patch(f"/jobs/{made['id']}", json={"gate": {"command": ["true"]}})
        assert refusal(patched) == (403, "forbidden")
        assert (await http.patch(f"/jobs/{made['id']}", json={"gate": None})).status_code == 200
    async with asked_by(headway(), "admin") as http:
        made = (await http.post("/jobs", json={**bare, "command": "backup --all"})).json()
        assert made["payload"] == {"kind": "command", "argv": ["backup", "--all"]}


@virtual_time
async def test_o4_what_a_command_is_told_in_secret_is_for_who_may_give_commands() -> None:
    hw = headway()
    command = Execute(("backup",), environment=(("TOKEN", "s3cret"),), stdin="s3cret too")
    async with opened(hw) as gateway, bearing(gateway, hw, "control") as http:
        job = await hw.jobs.add("backup", "command", every="1h", command=command)
        for asked in (f"/jobs/{job.id}", "/jobs", "/jobs/export"):
            answer = await http.get(asked)
            assert (answer.status_code, "s3cret" in answer.text) == (200, False)
            assert "TOKEN" in answer.text
        assert "s3cret" not in (await http.post(f"/jobs/{job.id}/pause")).text
        async with bearing(gateway, hw, "admin") as all_of:
            await passes(SECOND)
            assert "s3cret" in (await all_of.get(f"/jobs/{job.id}")).text


@virtual_time
async def test_o4_who_may_read_changes_nothing() -> None:
    hw = headway()
    async with opened(hw) as gateway, bearing(gateway, hw, "read", "submit") as http:
        job = await hw.jobs.add("mine", "support", every="1h", text="x")
        for method, rest, body in EVERYTHING_OF_A_JOB:
            status = (await http.request(method, f"/jobs/{job.id}{rest}", json=body)).status_code
            assert status == (200 if method == "GET" else 403)
