"""Jobs out and in again over HTTP (C-12)."""

import json

from headway import Headway
from headway.testing import virtual_time
from tests.unit.gateway.asking import asked_by, refusal
from tests.unit.gateway.calling import served


@virtual_time
async def test_c12_an_export_is_imported_on_another_server() -> None:
    one, two = Headway(), Headway()
    async with served(one) as http:
        await one.jobs.add("brief", "support", cron="0 9 * * *", text="x", stagger="3s")
        await one.jobs.add("tea", "support", every="20m", function="tea")
        exported = (await http.get("/jobs/export")).json()
    async with served(two) as http:
        body = {"text": json.dumps(exported)}
        first = (await http.post("/jobs/import", json=body)).json()
        assert [job["name"] for job in first["added"]] == ["brief", "tea"]
        assert first["problems"] == []
        second = (await http.post("/jobs/import", json=body)).json()
        assert (second["added"], len(second["changed"])) == ([], 2)
        assert (await http.get("/jobs/export")).json() == exported


@virtual_time
async def test_c12_an_export_is_paged() -> None:
    hw = Headway()
    async with served(hw) as http:
        for name in "abc":
            await hw.jobs.add(name, "support", every="1h", text="x")
        first = (await http.get("/jobs/export", params={"limit": 2})).json()
        rest = (await http.get("/jobs/export", params={"cursor": first["cursor"]})).json()
        names = [job["name"] for page in (first, rest) for job in page["jobs"]]
        assert (names, rest["cursor"]) == (["a", "b", "c"], None)


@virtual_time
async def test_c12_a_crontab_is_imported_and_what_cannot_be_is_told() -> None:
    async with served(Headway()) as http:
        text = "0 6 * * * backup --all\n@reboot hello\n"
        body = {"text": text, "form": "crontab"}
        answer = (await http.post("/jobs/import", json=body)).json()
        (job,) = answer["added"]
        assert (job["schedule"]["expr"], job["agentId"]) == ("0 6 * * *", "command")
        assert any("@reboot" in problem for problem in answer["problems"])


@virtual_time
async def test_a_text_that_is_no_file_of_jobs_is_a_problem_and_changes_nothing() -> None:
    async with served(Headway()) as http:
        for text in ("{", "17", '{"jobs": 3}'):
            answer = (await http.post("/jobs/import", json={"text": text})).json()
            assert (answer["added"], answer["changed"]) == ([], [])
            (problem,) = answer["problems"]
            assert problem.startswith("text: ")


@virtual_time
async def test_o4_an_import_may_replace_anything_so_it_needs_everything() -> None:
    body = {"text": "[]"}
    async with asked_by(Headway(), "control") as http:
        assert refusal(await http.post("/jobs/import", json=body)) == (403, "forbidden")
    async with asked_by(Headway(), "admin", agent="support") as http:
        assert refusal(await http.post("/jobs/import", json=body)) == (403, "forbidden")
    async with asked_by(Headway(), "admin") as http:
        assert (await http.post("/jobs/import", json=body)).status_code == 200
