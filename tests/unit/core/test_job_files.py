"""Jobs as JSON, out and in again, and what an OpenClaw file holds (C-12)."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count

import pytest

from headway.core.job_files import JobFile, Problem, job_data, read_jobs, write_jobs
from headway.core.jobs import new_job
from headway.model.errors import InvalidInput
from headway.model.heartbeat import HeartbeatSettings
from headway.model.job import ISOLATED, Job
from headway.model.payload import Execute, Gate, Say
from headway.model.run import AgentName, JobId, Route
from headway.model.schedule import At, Cron, Every
from headway.model.time import DAY, HOUR, MINUTE, SECOND, instant_of
from headway.model.words import Misfire, Overlap

NOW = instant_of(datetime(2026, 11, 15, 16, 0, tzinfo=UTC), "now")
PARIS = "Europe/Paris"


def read(data: object, agent: str | None = None) -> JobFile:
    ids: Iterator[int] = count(1)
    return read_jobs(json.dumps(data), NOW, PARIS, lambda: JobId(f"new{next(ids)}"), agent)


def only(data: dict[str, object], agent: str | None = None) -> Job:
    file = read([data], agent)
    assert [problem for problem in file.problems if not problem.taken] == []
    (job,) = file.jobs
    return job


def problems(data: dict[str, object], agent: str | None = None) -> dict[str, str]:
    return {problem.path: problem.why for problem in read([data], agent).problems}


FULL = Job(
    id=JobId("j1"),
    name="brief",
    agent=AgentName("bob"),
    schedule=Every(10 * MINUTE, NOW + 1, "Asia/Tokyo"),
    payload=Execute(("x", ""), "/srv", (("B", "2"), ("A", "")), "in"),
    created_at=NOW - DAY - 1,
    enabled=False,
    lane="night",  # type: ignore[arg-type]
    session="job",
    timeout=HOUR + 1,
    retries=0,
    max_attempts=2,
    priority=-1,
    overlap=Overlap.SKIP,
    misfire=Misfire.ALL,
    misfire_window=0,
    stagger=SECOND,
    deliver=Route("telegram", "acme", "42", "7"),
    delete_after_run=True,
    gate=Gate(argv=("true",)),
    declared=True,
)

BARE: dict[str, object] = {
    "name": "brief",
    "agentId": "bob",
    "schedule": {"kind": "cron", "expr": "0 9 * * 1-5", "tz": "America/Sao_Paulo"},
    "payload": {"kind": "message", "text": "What is new?"},
}


def test_c12_a_job_is_written_in_the_documented_form() -> None:
    job = new_job(
        JobId("j1"), {"name": "n", "agent": "bob", "at": "in 1h", "text": "hi"}, NOW, PARIS
    )
    assert json.loads(write_jobs([job])) == [
        {
            "id": "j1",
            "name": "n",
            "agentId": "bob",
            "enabled": True,
            "schedule": {"kind": "at", "atMs": (NOW + HOUR) // 1000, "tz": PARIS},
            "payload": {"kind": "message", "text": "hi"},
            "deleteAfterRun": True,
            "createdAtMs": NOW // 1000,
        }
    ]


def test_c12_every_field_is_written_and_read_again() -> None:
    unset = [name for name in Job.__struct_fields__ if getattr(FULL, name) in (None, "", ())]
    assert unset == ["heartbeat"]
    file = read_jobs(write_jobs([FULL]), NOW, PARIS, lambda: JobId("other"))
    assert file == JobFile((FULL,), ())
    assert job_data(FULL)["timeoutMs"] * 1000 == HOUR + 1  # type: ignore[operator]


def test_a_written_file_is_read_from_bytes_and_with_a_mark_of_its_encoding() -> None:
    text = write_jobs([FULL])
    for form in (text.encode(), "\ufeff" + text):
        assert read_jobs(form, NOW, PARIS, lambda: JobId("x")).jobs == (FULL,)


def test_heartbeats_are_not_written() -> None:
    beat = Job(
        JobId("h"),
        "heartbeat",
        AgentName("bob"),
        Every(HOUR, 0),
        Say("x"),
        0,
        heartbeat=HeartbeatSettings(),
    )
    assert [data["id"] for data in json.loads(write_jobs([beat, FULL]))] == ["j1"]


def test_c12_a_job_of_few_words_gets_the_defaults() -> None:
    job = only(BARE)
    assert job == Job(
        id=JobId("new1"),
        name="brief",
        agent=AgentName("bob"),
        schedule=Cron("0 9 * * 1-5", "America/Sao_Paulo"),
        payload=Say("What is new?"),
        created_at=NOW,
    )
    assert only({**BARE, "agentId": None}, agent="ann").agent == "ann"
    assert only({**BARE, "schedule": {"kind": "cron", "expr": "@daily"}}).schedule.zone == PARIS


def test_times_may_be_written_for_people() -> None:
    job = only({**BARE, "schedule": {"kind": "at", "at": "tomorrow 9am", "tz": "UTC"}})
    assert job.schedule == At(instant_of(datetime(2026, 11, 16, 9, tzinfo=UTC), "then"), "UTC")
    assert job.delete_after_run


def test_c6_a_job_whose_time_has_passed_is_taken_over_disabled() -> None:
    data = {**BARE, "schedule": {"kind": "at", "atMs": NOW // 1000 - 1}}
    job = only(data)
    assert not job.enabled
    assert job.schedule == At(NOW - 1000, PARIS)
    assert problems(data) == {"jobs[0].schedule": "its time has passed: it is taken over disabled"}
    assert problems({**data, "enabled": False}) == {}


BROKEN: list[tuple[dict[str, object], str]] = [
    ({"name": ""}, "name"),
    ({"name": None}, "name"),
    ({"agentId": None}, "agentId"),
    ({"agentId": 5}, "agentId"),
    ({"id": ""}, "id"),
    ({"id": 5}, "id"),
    ({"enabled": "yes"}, "enabled"),
    ({"schedule": None}, "schedule"),
    ({"schedule": "0 9 * * *"}, "schedule"),
    ({"schedule": {"expr": "0 9 * * *"}}, "schedule.kind"),
    ({"schedule": {"kind": "cron", "expr": "99 * * * *"}}, "schedule.expr"),
    ({"schedule": {"kind": "cron", "expr": 5}}, "schedule.expr"),
    ({"schedule": {"kind": "cron", "expr": "@daily", "tz": "Nowhere"}}, "schedule.tz"),
    ({"schedule": {"kind": "cron", "expr": "@daily", "tzz": "UTC"}}, "schedule.tzz"),
    ({"schedule": {"kind": "every", "everyMs": 0}}, "schedule.everyMs"),
    ({"schedule": {"kind": "every", "everyMs": 1e300}}, "schedule.everyMs"),
    ({"schedule": {"kind": "every", "everyMs": "5"}}, "schedule.everyMs"),
    ({"schedule": {"kind": "at", "atMs": None}}, "schedule"),
    ({"schedule": {"kind": "at", "atMs": -1}}, "schedule.atMs"),
    ({"schedule": {"kind": "at", "at": "some day"}}, "schedule.at"),
    ({"payload": None}, "payload"),
    ({"payload": {"text": "hi"}}, "payload.kind"),
    ({"payload": {"kind": "message"}}, "payload.text"),
    ({"payload": {"kind": "message", "text": "hi", "model": "x"}}, "payload.model"),
    ({"payload": {"kind": "function", "function": 5}}, "payload.function"),
    ({"payload": {"kind": "command"}}, "payload.argv"),
    ({"payload": {"kind": "command", "argv": ["x", 5]}}, "payload.argv"),
    ({"payload": {"kind": "command", "argv": ["x"], "stdin": 5}}, "payload.stdin"),
    (
        {"payload": {"kind": "command", "argv": ["x"], "environment": {"A": 5}}},
        "payload.environment.A",
    ),
    ({"timeoutMs": 0}, "timeoutMs"),
    ({"timeoutMs": "1h"}, "timeoutMs"),
    ({"timeoutMs": -1}, "timeoutMs"),
    ({"staggerMs": True}, "staggerMs"),
    ({"misfireWindowMs": -1}, "misfireWindowMs"),
    ({"maxAttempts": 0}, "maxAttempts"),
    ({"retries": 1.5}, "retries"),
    ({"overlap": "never"}, "overlap"),
    ({"deliver": {"to": "42"}}, "deliver.channel"),
    ({"gate": {"function": ""}}, "gate.function"),
    ({"deleteAfterRun": 1}, "deleteAfterRun"),
    ({"createdAtMs": -1}, "createdAtMs"),
    ({"createdAtMs": "now"}, "createdAtMs"),
    ({"declared": "yes"}, "declared"),
]


@pytest.mark.parametrize(("change", "path"), BROKEN)
def test_a_broken_job_is_reported_by_its_path_and_the_rest_is_read(
    change: dict[str, object], path: str
) -> None:
    fine = {**BARE, "name": "fine"}
    file = read([fine, {**BARE, **change}])
    assert [job.name for job in file.jobs] == ["fine"]
    (problem,) = file.problems
    assert (problem.path, problem.taken) == (f"jobs[1].{path}", False)


def test_an_unknown_key_is_reported_with_the_one_that_was_meant() -> None:
    assert problems({**BARE, "maxAttempt": 5}) == {
        "jobs[0].maxAttempt": "this key is not known; did you mean 'maxAttempts'?"
    }
    assert problems({**BARE, "colour": "red"}) == {"jobs[0].colour": "this key is not known"}


def test_a_name_or_id_that_is_taken_is_reported() -> None:
    file = read([{**BARE, "id": "a"}, {**BARE, "id": "b"}, {**BARE, "id": "a", "name": "x"}])
    assert [job.id for job in file.jobs] == ["a"]
    assert [problem.path for problem in file.problems] == ["jobs[1].name", "jobs[2].id"]
    assert len(read([{**BARE, "agentId": "ann"}, BARE]).jobs) == 2


@pytest.mark.parametrize(
    "text", ["", "nonsense", "5", "null", "{}", '{"jobs": {}}', '"x"', "[" * 100_000, b"\xff\xfe"]
)
def test_what_holds_no_jobs_at_all_is_refused(text: str | bytes) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_jobs(text, NOW, PARIS, lambda: JobId("x"))
    assert caught.value.field == "jobs"


@pytest.mark.parametrize("item", [None, 5, "x", []])
def test_what_is_no_job_is_reported(item: object) -> None:
    (problem,) = read([item]).problems
    assert problem.path == "jobs[0]"


def test_a_job_of_a_file_without_one_is_no_error() -> None:
    assert read([]) == JobFile((), ())
    assert read({"version": 1, "jobs": []}) == JobFile((), ())


CLAW: dict[str, object] = {
    "id": "7f1c",
    "agentId": "main",
    "name": "Calendar",
    "enabled": True,
    "createdAtMs": NOW // 1000 - 5,
    "updatedAtMs": NOW // 1000,
    "schedule": {"kind": "cron", "expr": "0 */6 * * *", "tz": "America/New_York"},
    "sessionTarget": "isolated",
    "wakeMode": "now",
    "payload": {"kind": "agentTurn", "message": "Look at the calendar."},
    "delivery": {"mode": "announce", "channel": "telegram", "to": "@ops"},
    "state": {"nextRunAtMs": 5, "lastStatus": "ok"},
}


def claw(**change: object) -> dict[str, object]:
    return {**CLAW, **change}


def test_c12_an_openclaw_file_is_read() -> None:
    file = read({"version": 1, "jobs": [CLAW]})
    assert file == JobFile(
        (
            Job(
                id=JobId("7f1c"),
                name="Calendar",
                agent=AgentName("main"),
                schedule=Cron("0 */6 * * *", "America/New_York"),
                payload=Say("Look at the calendar."),
                created_at=NOW - 5000,
                deliver=Route("telegram", peer="@ops"),
            ),
        ),
        (),
    )


@pytest.mark.parametrize(
    ("schedule", "kept"),
    [
        ({"kind": "every", "everyMs": 60_000}, Every(MINUTE, NOW - 5000, PARIS)),
        ({"kind": "every", "everyMs": 60_000, "anchorMs": 7}, Every(MINUTE, 7000, PARIS)),
        ({"everyMs": 60_000}, Every(MINUTE, NOW - 5000, PARIS)),
        ({"kind": "at", "atMs": NOW // 1000 + 5}, At(NOW + 5000, "UTC")),
        ({"kind": "at", "at": "2026-11-15T16:00:01Z"}, At(NOW + SECOND, "UTC")),
        ({"kind": "at", "at": "2026-11-15T16:00:01"}, At(NOW + SECOND, "UTC")),
        ({"at": "2026-11-15T16:00:01.000Z"}, At(NOW + SECOND, "UTC")),
        ("0 9 * * *", Cron("0 9 * * *", PARIS)),
        ({"kind": "cron", "cron": "0 9 * * *"}, Cron("0 9 * * *", PARIS)),
        ({"kind": "cron", "expr": "0 30 9 * * *"}, Cron("30 9 * * *", PARIS)),
    ],
)
def test_c12_openclaw_schedules(schedule: object, kept: object) -> None:
    assert only(claw(schedule=schedule)).schedule == kept


def test_c12_an_openclaw_stagger_is_kept() -> None:
    schedule = {"kind": "cron", "expr": "0 * * * *", "staggerMs": 300_000}
    assert only(claw(schedule=schedule)).stagger == 5 * MINUTE
    assert only(claw(schedule={**schedule, "staggerMs": 0})).stagger == 0


def test_c12_an_openclaw_job_that_fires_once_is_deleted_unless_it_says_otherwise() -> None:
    schedule = {"kind": "at", "atMs": NOW // 1000 + 5}
    assert only(claw(schedule=schedule)).delete_after_run
    assert not only(claw(schedule=schedule, deleteAfterRun=False)).delete_after_run


@pytest.mark.parametrize(
    ("change", "session"),
    [
        ({"sessionTarget": "isolated"}, ISOLATED),
        ({"sessionTarget": "main"}, "agent:main:main"),
        ({"sessionTarget": "main", "sessionKey": "agent:main:work"}, "agent:main:work"),
        ({"sessionTarget": "session:agent:main:x"}, "agent:main:x"),
        ({"sessionTarget": "current", "sessionKey": "agent:main:y"}, "agent:main:y"),
        ({"sessionTarget": None}, ISOLATED),
        (
            {"sessionTarget": None, "payload": {"kind": "systemEvent", "text": "x"}},
            "agent:main:main",
        ),
    ],
)
def test_c12_openclaw_sessions(change: dict[str, object], session: str) -> None:
    assert only(claw(**change)).session == session


@pytest.mark.parametrize(
    ("payload", "kept"),
    [
        ({"kind": "systemEvent", "text": "Wake"}, Say("Wake")),
        ({"kind": "agent_turn", "message": "Go"}, Say("Go")),
        ({"message": "Go"}, Say("Go")),
        ({"text": "Wake"}, Say("Wake")),
        (
            {"kind": "command", "argv": ["x"], "cwd": "/srv", "env": {"A": "1"}, "input": "y"},
            Execute(("x",), "/srv", (("A", "1"),), "y"),
        ),
    ],
)
def test_c12_openclaw_payloads(payload: object, kept: object) -> None:
    assert only(claw(payload=payload)).payload == kept


def test_c12_an_openclaw_timeout_is_kept() -> None:
    payload = {"kind": "agentTurn", "message": "x", "timeoutSeconds": 90}
    assert only(claw(payload=payload)).timeout == 90 * SECOND
    unbounded = claw(payload={**payload, "timeoutSeconds": 0})
    assert only(unbounded).timeout is None
    assert list(problems(unbounded)) == ["jobs[0].payload.timeoutSeconds"]


@pytest.mark.parametrize(
    ("change", "route"),
    [
        ({"delivery": {"mode": "none"}}, None),
        (
            {"delivery": {"channel": "slack", "to": "C1", "threadId": 5, "accountId": "acme"}},
            Route("slack", "acme", "C1", "5"),
        ),
        (
            {"delivery": {"mode": "webhook", "to": "https://example.com/x"}},
            Route("webhook", peer="https://example.com/x"),
        ),
        (
            {
                "delivery": None,
                "payload": {
                    "kind": "agentTurn",
                    "message": "x",
                    "deliver": True,
                    "channel": "telegram",
                    "to": "42",
                },
            },
            Route("telegram", peer="42"),
        ),
        (
            {
                "delivery": None,
                "payload": {"kind": "agentTurn", "message": "x", "provider": "irc", "to": "#ops"},
            },
            Route("irc", peer="#ops"),
        ),
        (
            {
                "delivery": None,
                "payload": {"kind": "agentTurn", "message": "x", "deliver": False, "to": "42"},
            },
            None,
        ),
        ({"delivery": None}, None),
    ],
)
def test_c12_openclaw_deliveries(change: dict[str, object], route: Route | None) -> None:
    data = claw(**change)
    assert only(data).deliver == route
    assert problems(data) == {}


def test_c12_what_headway_does_not_have_is_reported_and_the_job_taken() -> None:
    data = claw(
        description="of the team",
        wakeMode="next-heartbeat",
        failureAlert={"after": 3},
        pacing={},
        schedule={"kind": "cron", "expr": "0 0 9 * * *", "tz": "UTC"},
        sessionTarget="elsewhere",
        payload={"kind": "agentTurn", "message": "x", "model": "big", "lightContext": False},
        delivery={"mode": "announce", "channel": "last", "bestEffort": True},
    )
    file = read([data])
    assert [job.schedule for job in file.jobs] == [Cron("0 9 * * *", "UTC")]
    assert all(problem.taken for problem in file.problems)
    assert sorted(problem.path for problem in file.problems) == [
        "jobs[0].delivery.bestEffort",
        "jobs[0].delivery.channel",
        "jobs[0].description",
        "jobs[0].failureAlert",
        "jobs[0].payload.model",
        "jobs[0].schedule.expr",
        "jobs[0].sessionTarget",
        "jobs[0].wakeMode",
    ]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"schedule": {"kind": "on-exit", "command": "x"}}, "schedule.kind"),
        ({"schedule": None}, "schedule"),
        ({"schedule": {}}, "schedule.kind"),
        ({"schedule": {"kind": "cron", "expr": "30 0 9 * * *"}}, "schedule.expr"),
        ({"schedule": {"kind": "cron", "expr": "0 9 * * *", "tz": "Nowhere"}}, "schedule.tz"),
        ({"payload": None}, "payload"),
        ({"payload": {"kind": "script", "script": "x"}}, "payload.kind"),
        ({"payload": {"kind": "agentTurn", "message": " "}}, "payload.message"),
        ({"payload": {"kind": "systemEvent", "message": "x"}}, "payload.text"),
        ({"payload": {"kind": "command", "argv": []}}, "payload.argv"),
        ({"trigger": {"script": "x"}}, "trigger"),
        ({"agentId": None}, "agentId"),
    ],
)
def test_c12_an_openclaw_job_that_would_do_something_else_is_left_out(
    change: dict[str, object], path: str
) -> None:
    file = read([claw(**change)])
    assert file.jobs == ()
    assert [problem.path for problem in file.problems] == [f"jobs[0].{path}"]


def test_c12_openclaw_jobs_may_share_a_name_or_have_none() -> None:
    file = read([claw(id=id_) for id_ in ("a", "b", "c")])
    assert [job.name for job in file.jobs] == ["Calendar", "Calendar (2)", "Calendar (3)"]
    assert [problem.path for problem in file.problems] == ["jobs[1].name", "jobs[2].name"]
    nameless = claw(name=None, payload={"kind": "agentTurn", "message": "Look\nat it"})
    assert only(nameless).name == "Look"
    assert len(only(claw(name="", payload={"kind": "systemEvent", "text": "x" * 99})).name) == 60


def test_c12_an_openclaw_job_without_an_agent_gets_the_one_that_was_named() -> None:
    assert only(claw(agentId=None), agent="ann").agent == "ann"
    assert only(claw(agentId=None, sessionTarget="main"), agent="ann").session == "agent:ann:main"


def test_a_past_openclaw_reminder_is_taken_over_disabled() -> None:
    file = read([claw(schedule={"kind": "at", "at": "2026-01-01T00:00:00Z"})])
    assert [job.enabled for job in file.jobs] == [False]
    assert file.problems == (
        Problem("jobs[0].schedule", "its time has passed: it is taken over disabled", taken=True),
    )
