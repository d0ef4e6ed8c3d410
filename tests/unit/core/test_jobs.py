"""Jobs as they are asked for and changed: fields checked, the zone kept, the next firing right (C-1 to C-10)."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import get_args

import msgspec
import pytest

from headway.core.jobs import JOB_FIELDS, describe, first_ticking, new_job, patched, reticked
from headway.core.schedule import offset
from headway.model.errors import InvalidInput, UnknownOption
from headway.model.job import ISOLATED, JOB, Job, Ticking
from headway.model.payload import Ask, Execute, Gate, Payload, Say
from headway.model.run import JobId, Route
from headway.model.schedule import At, Cron, Every, Schedule
from headway.model.settings import MAX_TEXT
from headway.model.time import DAY, HOUR, MINUTE, SECOND, instant_of
from headway.model.words import Misfire, Overlap

SAO_PAULO = "America/Sao_Paulo"
NOW = instant_of(datetime(2026, 11, 15, 16, 0, tzinfo=UTC), "now")
"""A Sunday, 13:00 in São Paulo."""
ID = JobId("j1")


def make(**fields: object) -> Job:
    asked: dict[str, object] = {"name": "brief", "agent": "bob", **fields}
    if not asked.keys() & {"cron", "every", "at", "schedule"}:
        asked["cron"] = "0 9 * * 1-5"
    if not asked.keys() & {"text", "command", "function"}:
        asked["text"] = "What is new?"
    return new_job(ID, asked, NOW, SAO_PAULO)


def refusal(**fields: object) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        make(**fields)
    return caught.value


def patch_refusal(job: Job, patch: dict[str, object]) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        patched(job, patch, NOW)
    return caught.value


def test_c1_a_job_of_few_words_has_the_defaults() -> None:
    job = make()
    assert job == Job(
        id=ID,
        name="brief",
        agent="bob",  # type: ignore[arg-type]
        schedule=Cron("0 9 * * 1-5", SAO_PAULO),
        payload=Say("What is new?"),
        created_at=NOW,
    )
    assert (job.session, job.overlap, job.misfire) == (ISOLATED, Overlap.QUEUE, Misfire.ONCE)


TOMORROW_9 = instant_of(datetime(2026, 11, 16, 12, 0, tzinfo=UTC), "then")

SCHEDULES: list[tuple[dict[str, object], Schedule]] = [
    ({"cron": "0 9 * * 1-5"}, Cron("0 9 * * 1-5", SAO_PAULO)),
    ({"cron": "@daily", "tz": "Asia/Tokyo"}, Cron("0 0 * * *", "Asia/Tokyo")),
    ({"cron": "@every 10m"}, Every(10 * MINUTE, NOW + 10 * MINUTE, SAO_PAULO)),
    ({"every": "1h30m"}, Every(90 * MINUTE, NOW + 90 * MINUTE, SAO_PAULO)),
    ({"every": timedelta(hours=1), "tz": "UTC"}, Every(HOUR, NOW + HOUR, "UTC")),
    ({"at": "tomorrow 9am"}, At(TOMORROW_9, SAO_PAULO)),
    ({"at": "in 20m"}, At(NOW + 20 * MINUTE, SAO_PAULO)),
    ({"at": "2026-11-16T12:00:00Z", "tz": "UTC"}, At(TOMORROW_9, "UTC")),
    ({"at": datetime(2026, 11, 16, 12, 0, tzinfo=UTC)}, At(TOMORROW_9, SAO_PAULO)),
    ({"at": timedelta(minutes=5)}, At(NOW + 5 * MINUTE, SAO_PAULO)),
    ({"schedule": Cron("5 4 * * *", "UTC")}, Cron("5 4 * * *", "UTC")),
    ({"schedule": Every(HOUR, NOW, "UTC")}, Every(HOUR, NOW, "UTC")),
    ({"schedule": At(TOMORROW_9, "UTC"), "tz": "UTC"}, At(TOMORROW_9, "UTC")),
    ({"schedule": {"kind": "cron", "expr": "5 4 * * *"}}, Cron("5 4 * * *", SAO_PAULO)),
    (
        {"schedule": {"kind": "cron", "expr": "5 4 * * *", "tz": "UTC"}},
        Cron("5 4 * * *", "UTC"),
    ),
    (
        {"schedule": {"kind": "every", "everyMs": 1500}},
        Every(1_500_000, NOW + 1_500_000, SAO_PAULO),
    ),
    (
        {"schedule": {"kind": "every", "every": "10m", "anchorMs": 0}},
        Every(10 * MINUTE, 0, SAO_PAULO),
    ),
    ({"schedule": {"kind": "at", "atMs": TOMORROW_9 // 1000}}, At(TOMORROW_9, SAO_PAULO)),
    ({"schedule": {"kind": "at", "at": "tomorrow 9am"}}, At(TOMORROW_9, SAO_PAULO)),
]


@pytest.mark.parametrize(("fields", "schedule"), SCHEDULES)
def test_c2_each_way_to_say_a_schedule(fields: dict[str, object], schedule: Schedule) -> None:
    assert make(**fields).schedule == schedule


def test_every_kind_of_schedule_is_among_the_examples() -> None:
    assert {type(schedule) for _, schedule in SCHEDULES} == set(get_args(Schedule))


PAYLOADS: list[tuple[dict[str, object], Payload]] = [
    ({"text": "hello"}, Say("hello")),
    ({"function": "stand_up"}, Ask("stand_up")),
    ({"command": ["backup", "--all"]}, Execute(("backup", "--all"))),
    ({"command": ("backup", "")}, Execute(("backup", ""))),
    ({"command": "backup --to 'my disk'"}, Execute(("backup", "--to", "my disk"))),
    ({"command": "grep '$HOME | x' notes"}, Execute(("grep", "$HOME | x", "notes"))),
    (
        {"command": {"argv": ["x"], "folder": "/srv", "environment": {"A": "1"}, "stdin": "y"}},
        Execute(("x",), "/srv", (("A", "1"),), "y"),
    ),
    (
        {"command": Execute(("x",), "/srv", (("A", "1"), ("B", "")), "y")},
        Execute(("x",), "/srv", (("A", "1"), ("B", "")), "y"),
    ),
]


@pytest.mark.parametrize(("fields", "payload"), PAYLOADS)
def test_c1_each_way_to_say_what_is_asked(fields: dict[str, object], payload: Payload) -> None:
    assert make(**fields).payload == payload


GOOD: list[tuple[str, object, object]] = [
    ("name", "x" * 512, "x" * 512),
    ("lane", "night", "night"),
    ("session", "job", JOB),
    ("session", "agent:bob:telegram:42", "agent:bob:telegram:42"),
    ("timeout", "10m", 10 * MINUTE),
    ("retries", 0, 0),
    ("max_attempts", 2, 2),
    ("priority", -3, -3),
    ("overlap", "skip", Overlap.SKIP),
    ("overlap", Overlap.INTERRUPT, Overlap.INTERRUPT),
    ("misfire", "all", Misfire.ALL),
    ("misfire_window", "2h", 2 * HOUR),
    ("misfire_window", 0, 0),
    ("stagger", "30s", 30 * SECOND),
    ("deliver", Route("telegram", "acme", "42", "7"), Route("telegram", "acme", "42", "7")),
    ("deliver", {"channel": "log"}, Route("log")),
    (
        "deliver",
        {"channel": "telegram", "to": "42", "thread": "7", "account": "acme"},
        Route("telegram", "acme", "42", "7"),
    ),
    ("delete_after_run", True, True),
    ("gate", {"function": "has_mail"}, Gate(function="has_mail")),
    ("gate", {"command": ["test", "-f", "x"]}, Gate(argv=("test", "-f", "x"))),
    ("gate", Gate(argv=("true",)), Gate(argv=("true",))),
    ("enabled", False, False),
]


@pytest.mark.parametrize(("field", "said", "kept"), GOOD)
def test_c1_each_field_is_taken(field: str, said: object, kept: object) -> None:
    assert getattr(make(**{field: said}), field) == kept


def test_a_field_that_is_none_was_not_said() -> None:
    nothing = dict.fromkeys(JOB_FIELDS - {"name", "agent", "cron", "text"})
    assert make(cron="@daily", text="hi", **nothing) == make(cron="@daily", text="hi")


def test_c1_a_job_that_fires_once_is_deleted_afterwards_unless_told_otherwise() -> None:
    assert make(at="in 1h").delete_after_run
    assert not make(at="in 1h", delete_after_run=False).delete_after_run
    assert not make(every="1h").delete_after_run


BAD: list[tuple[dict[str, object], str]] = [
    ({"name": ""}, "name"),
    ({"name": None}, "name"),
    ({"name": "x" * 513}, "name"),
    ({"name": "half a \ud800 character"}, "name"),
    ({"name": 7}, "name"),
    ({"agent": ""}, "agent"),
    ({"agent": None}, "agent"),
    ({"cron": "*/0 * * * *"}, "cron"),
    ({"cron": "99 * * * *"}, "cron"),
    ({"cron": "0 0 31 2 *"}, "cron"),
    ({"cron": "@reboot"}, "cron"),
    ({"cron": 5}, "cron"),
    ({"every": "500x"}, "every"),
    ({"every": 0}, "every"),
    ({"every": 30}, "every"),
    ({"at": "2020-01-01T00:00:00Z"}, "at"),
    ({"at": "some day"}, "at"),
    ({"at": 1_900_000_000}, "at"),
    ({"at": True}, "at"),
    ({"at": "in 1h", "tz": "Mars/Phobos"}, "tz"),
    ({"cron": "@daily", "every": "1h"}, "every"),
    ({"every": "1h", "schedule": {"kind": "every", "everyMs": 1}}, "schedule"),
    ({"schedule": "0 9 * * *"}, "schedule"),
    ({"schedule": {}}, "schedule.kind"),
    ({"schedule": {"kind": "sometimes"}}, "schedule.kind"),
    ({"schedule": {"kind": "cron"}}, "schedule"),
    ({"schedule": {"kind": "cron", "expr": "99 * * * *"}}, "schedule.expr"),
    ({"schedule": {"kind": "cron", "expr": "@daily", "tz": "Nowhere"}}, "schedule.tz"),
    ({"schedule": {"kind": "cron", "expr": "@daily", "tz": "UTC"}, "tz": "Asia/Tokyo"}, "tz"),
    ({"schedule": {"kind": "cron", "expr": "@daily", "anchorMs": 0}}, "schedule.anchorMs"),
    ({"schedule": {"kind": "every", "everyMs": 0}}, "schedule.everyMs"),
    ({"schedule": {"kind": "every", "everyMs": -5}}, "schedule.everyMs"),
    ({"schedule": {"kind": "every", "everyMs": True}}, "schedule.everyMs"),
    ({"schedule": {"kind": "every", "everyMs": "1000"}}, "schedule.everyMs"),
    ({"schedule": {"kind": "every", "everyMs": 10**400}}, "schedule.everyMs"),
    ({"schedule": {"kind": "every", "everyMs": float("nan")}}, "schedule.everyMs"),
    ({"schedule": {"kind": "every", "everyMs": 1, "every": "1s"}}, "schedule"),
    ({"schedule": {"kind": "every", "everyMs": 1, "anchorMs": "x"}}, "schedule.anchorMs"),
    ({"schedule": {"kind": "at", "atMs": 1}}, "schedule.atMs"),
    ({"schedule": {"kind": "at", "at": "yesterday"}}, "schedule.at"),
    ({"schedule": At(NOW - 1)}, "schedule"),
    ({"schedule": Every(0, NOW)}, "schedule"),
    ({"schedule": Every(HOUR, 1.5)}, "schedule"),  # type: ignore[arg-type]
    ({"schedule": Cron("@never")}, "schedule"),
    ({"schedule": Cron("@daily", "Nowhere")}, "tz"),
    ({"text": ""}, "text"),
    ({"text": "  \n"}, "text"),
    ({"text": 5}, "text"),
    ({"text": "x" * (MAX_TEXT + 1)}, "text"),
    ({"text": "hi", "command": ["x"]}, "command"),
    ({"text": "hi", "function": "f"}, "function"),
    ({"function": ""}, "function"),
    ({"command": ""}, "command"),
    ({"command": []}, "command"),
    ({"command": [""]}, "command"),
    ({"command": ["x", 5]}, "command"),
    ({"command": ["x\0"]}, "command"),
    ({"command": 5}, "command"),
    ({"command": "make | tee log"}, "command"),
    ({"command": "echo $HOME"}, "command"),
    ({"command": 'echo "$HOME"'}, "command"),
    ({"command": "rm *.tmp"}, "command"),
    ({"command": "echo 'open"}, "command"),
    ({"command": {"argv": ["x"], "cwd": "/"}}, "command.cwd"),
    ({"command": {"folder": "/"}}, "command.argv"),
    ({"command": {"argv": ["x"], "environment": {"A B": "1"}}}, "command.environment"),
    ({"command": {"argv": ["x"], "environment": {"A": 1}}}, "command.environment.A"),
    ({"command": {"argv": ["x"], "environment": "A=1"}}, "command.environment"),
    ({"command": {"argv": ["x"], "environment": [("A", "1"), ("A", "2")]}}, "command.environment"),
    ({"command": {"argv": ["x"], "stdin": 5}}, "command.stdin"),
    ({"lane": ""}, "lane"),
    ({"session": ""}, "session"),
    ({"timeout": 0}, "timeout"),
    ({"timeout": "500x"}, "timeout"),
    ({"retries": -1}, "retries"),
    ({"retries": True}, "retries"),
    ({"max_attempts": 0}, "max_attempts"),
    ({"priority": 101}, "priority"),
    ({"overlap": "sometimes"}, "overlap"),
    ({"misfire": "twice"}, "misfire"),
    ({"misfire_window": -5}, "misfire_window"),
    ({"stagger": "soon"}, "stagger"),
    ({"deliver": "telegram"}, "deliver"),
    ({"deliver": {}}, "deliver.channel"),
    ({"deliver": {"channel": ""}}, "deliver.channel"),
    ({"deliver": {"channel": "x", "to": 42}}, "deliver.to"),
    ({"deliver": {"channel": "x", "to": "x" * 4097}}, "deliver.to"),
    ({"command": {"argv": ["x"], "environment": [("A",)]}}, "command.environment"),
    ({"command": {"argv": ["x"], "folder": None}}, "command.folder"),
    ({"command": ["x" * MAX_TEXT, "y"]}, "command"),
    ({"schedule": {"kind": "every", "everyMs": Decimal("NaN")}}, "schedule.everyMs"),
    ({"deliver": {"channel": "x", "peer": "42"}}, "deliver.peer"),
    ({"deliver": Route("x", peer=42)}, "deliver.to"),  # type: ignore[arg-type]
    ({"gate": {}}, "gate"),
    ({"gate": "has_mail"}, "gate"),
    ({"gate": {"function": "f", "command": ["x"]}}, "gate"),
    ({"gate": {"command": "test | x"}}, "gate.command"),
    ({"gate": {"func": "f"}}, "gate.func"),
    ({"delete_after_run": "yes"}, "delete_after_run"),
    ({"enabled": 1}, "enabled"),
]


@pytest.mark.parametrize(("fields", "field"), BAD)
def test_c3_a_bad_value_is_refused_by_the_name_of_its_field(
    fields: dict[str, object], field: str
) -> None:
    assert refusal(**fields).field == field


def test_c3_a_schedule_and_something_to_ask_are_needed() -> None:
    bare = {"name": "brief", "agent": "bob"}
    with pytest.raises(InvalidInput, match="exactly one of: cron, every, at"):
        new_job(ID, {**bare, "text": "hi"}, NOW, "UTC")
    with pytest.raises(InvalidInput, match="exactly one of: text, command, function"):
        new_job(ID, {**bare, "every": "1h"}, NOW, "UTC")


@pytest.mark.parametrize(
    ("key", "close"), [("overlapp", "overlap"), ("colour", None), ("tezt", "text")]
)
def test_c13_an_unknown_key_is_refused_with_the_one_that_was_meant(
    key: str, close: str | None
) -> None:
    error = refusal(**{key: "x"})
    assert isinstance(error, UnknownOption)
    assert error.field == key
    assert error.close == ([] if close is None else [close])


def test_every_field_of_a_job_can_be_said() -> None:
    made_by_headway = {"id", "created_at", "heartbeat", "declared", "payload"}
    assert set(Job.__struct_fields__) - made_by_headway <= JOB_FIELDS


def test_c2_a_patch_keeps_the_zone_that_it_does_not_name() -> None:
    job = make(cron="0 9 * * 1-5", tz="Asia/Tokyo")
    assert patched(job, {"cron": "0 10 * * *"}, NOW).schedule == Cron("0 10 * * *", "Asia/Tokyo")
    moved = patched(job, {"schedule": {"kind": "cron", "expr": "0 8 * * *"}}, NOW)
    assert moved.schedule == Cron("0 8 * * *", "Asia/Tokyo")
    once = patched(job, {"at": "tomorrow 9am"}, NOW)
    # 16 November has begun in Tokyo already.
    assert once.schedule == At(
        instant_of(datetime(2026, 11, 17, 0, 0, tzinfo=UTC), "then"), "Asia/Tokyo"
    )
    assert patched(once, {"cron": "@hourly"}, NOW).schedule.zone == "Asia/Tokyo"
    assert patched(job, {"text": "other", "enabled": False}, NOW).schedule == job.schedule


def test_c2_a_zone_alone_moves_the_schedule_there() -> None:
    assert patched(make(cron="0 9 * * *"), {"tz": "UTC"}, NOW).schedule == Cron("0 9 * * *", "UTC")
    job = make(at="tomorrow 9am")
    assert patched(job, {"tz": "UTC"}, NOW).schedule == At(TOMORROW_9, "UTC")
    both = patched(job, {"cron": "0 9 * * *", "tz": "Asia/Tokyo"}, NOW)
    assert both.schedule == Cron("0 9 * * *", "Asia/Tokyo")


@pytest.mark.parametrize(("field", "said", "kept"), GOOD)
def test_a_patch_changes_what_it_says_and_nothing_else(
    field: str, said: object, kept: object
) -> None:
    job = make(every="1h", priority=3, lane="day", retries=1, deliver=Route("log"))
    changed = patched(job, {field: said}, NOW)
    assert getattr(changed, field) == kept
    assert msgspec.structs.replace(changed, **{field: getattr(job, field)}) == job


@pytest.mark.parametrize(("fields", "payload"), PAYLOADS)
def test_a_patch_may_ask_something_else(fields: dict[str, object], payload: Payload) -> None:
    job = make(text="old")
    assert patched(job, fields, NOW) == msgspec.structs.replace(job, payload=payload)


@pytest.mark.parametrize(
    ("fields", "field"), [case for case in BAD if None not in case[0].values()]
)
def test_a_patch_is_checked_as_a_new_job_is(fields: dict[str, object], field: str) -> None:
    assert patch_refusal(make(), fields).field == field


@pytest.mark.parametrize(
    "field", ["name", "agent", "tz", "cron", "every", "at", "schedule", "text"]
)
def test_what_a_job_cannot_do_without_cannot_be_reset(field: str) -> None:
    assert patch_refusal(make(), {field: None}).field == field


def test_none_resets_an_option() -> None:
    options = {field: said for field, said, _ in GOOD if field not in {"name", "agent"}}
    job = make(every="1h", **options)
    reset = patched(job, dict.fromkeys(options), NOW)
    assert reset == make(every="1h")
    once = make(at="in 1h", delete_after_run=False)
    assert patched(once, {"delete_after_run": None}, NOW).delete_after_run


def test_id_and_creation_cannot_be_changed() -> None:
    job = make()
    assert patched(job, {"id": ID, "created_at": NOW}, NOW) == job
    assert "cannot be changed" in str(patch_refusal(job, {"id": "j2"}))
    assert "cannot be changed" in str(patch_refusal(job, {"created_at": NOW + 1}))


def test_an_empty_patch_changes_nothing() -> None:
    job = make(at="in 1h", deliver=Route("log"), gate={"function": "f"}, stagger="1m")
    assert patched(job, {}, NOW + DAY) == job


def test_c2_the_same_period_said_again_keeps_the_beat() -> None:
    job = make(every="10m")
    later = NOW + 7 * MINUTE
    assert patched(job, {"every": "10m"}, later) == job
    assert patched(job, {"cron": "@every 10m"}, later) == job
    assert patched(job, {"schedule": {"kind": "every", "everyMs": 600_000}}, later) == job
    anchored = {"kind": "every", "everyMs": 600_000, "anchorMs": later // 1000}
    assert patched(job, {"schedule": anchored}, later).schedule == Every(
        10 * MINUTE, later, SAO_PAULO
    )
    assert patched(job, {"every": "11m"}, later).schedule == Every(
        11 * MINUTE, later + 11 * MINUTE, SAO_PAULO
    )


def test_a_schedule_that_the_job_has_may_be_said_again_when_it_has_passed() -> None:
    job = make(at="in 1h")
    assert isinstance(job.schedule, At)
    later = NOW + DAY
    same = {"kind": "at", "atMs": job.schedule.at // 1000}
    assert patched(job, {"schedule": same}, later) == job
    assert patched(job, {"schedule": job.schedule, "lane": "x"}, later).lane == "x"
    with pytest.raises(InvalidInput):
        patched(job, {"schedule": {**same, "atMs": job.schedule.at // 1000 + 1}}, later)


def test_c1_a_job_that_no_longer_fires_once_is_no_longer_deleted() -> None:
    once = make(at="in 1h")
    assert not patched(once, {"cron": "@daily"}, NOW).delete_after_run
    assert patched(once, {"cron": "@daily", "delete_after_run": True}, NOW).delete_after_run
    assert patched(make(), {"at": "in 1h"}, NOW).delete_after_run
    assert not patched(make(), {"every": "1h"}, NOW).delete_after_run


def test_c10_a_job_whose_time_has_passed_cannot_be_enabled() -> None:
    job = make(at="in 1h", enabled=False)
    later = NOW + 2 * HOUR
    with pytest.raises(InvalidInput, match="its own has passed") as caught:
        patched(job, {"enabled": True}, later)
    assert caught.value.field == "enabled"
    assert patched(job, {"enabled": True, "at": "in 5m"}, later).enabled
    assert patched(job, {"enabled": True}, NOW).enabled


def test_the_first_firing_of_a_new_job() -> None:
    assert first_ticking(make(), NOW) == Ticking(next_at=TOMORROW_9, since=NOW)
    assert first_ticking(make(every="10m"), NOW).next_at == NOW + 10 * MINUTE
    assert first_ticking(make(at="in 10m"), NOW).next_at == NOW + 10 * MINUTE
    assert first_ticking(make(enabled=False), NOW) == Ticking(since=NOW)


def test_c6_an_instant_that_comes_while_the_job_is_made_is_due_at_once() -> None:
    assert first_ticking(make(at="in 1s"), NOW + 5 * SECOND).next_at == NOW + SECOND


def test_c8_the_first_firing_is_staggered() -> None:
    late = offset(ID, HOUR)
    assert late
    assert first_ticking(make(stagger="1h"), NOW).next_at == TOMORROW_9 + late
    assert first_ticking(make(at="in 1m", stagger="1h"), NOW).next_at == NOW + MINUTE + late


def test_c10_disabling_stops_what_has_not_started() -> None:
    job = make()
    ticking = Ticking(7, NOW + 1, NOW + 2, NOW + 3, since=5)
    off = patched(job, {"enabled": False}, NOW)
    assert reticked(job, off, ticking, NOW) == Ticking(7, since=5)


def test_c10_enabling_computes_the_next_firing_and_forgets_failures() -> None:
    off = make(enabled=False)
    on = patched(off, {"enabled": True}, NOW)
    ticking = Ticking(7, since=5, paused="failed 10 times in a row")
    assert reticked(off, on, ticking, NOW) == Ticking(7, next_at=TOMORROW_9, since=NOW)


def test_a_change_while_disabled_keeps_why_it_was_paused() -> None:
    off = make(enabled=False)
    renamed = patched(off, {"name": "other", "cron": "@hourly"}, NOW)
    ticking = Ticking(7, since=5, paused="failed 10 times in a row")
    assert reticked(off, renamed, ticking, NOW) == ticking


@pytest.mark.parametrize(
    "patch",
    [
        {"name": "x"},
        {"text": "x"},
        {"lane": "x"},
        {"deliver": {"channel": "log"}},
        {"enabled": True},
    ],
)
def test_c10_other_changes_leave_the_next_firing_alone(patch: dict[str, object]) -> None:
    job = make()
    due = Ticking(7, next_at=NOW - 5, wake_at=NOW + 1, since=5)
    assert reticked(job, patched(job, patch, NOW), due, NOW) == due


@pytest.mark.parametrize(
    ("patch", "next_at"),
    [
        ({"every": "10m"}, NOW + 10 * MINUTE),
        ({"tz": "UTC"}, instant_of(datetime(2026, 11, 16, 9, 0, tzinfo=UTC), "then")),
        ({"at": "in 5m"}, NOW + 5 * MINUTE),
        ({"stagger": "1h"}, TOMORROW_9 + offset(ID, HOUR)),
    ],
)
def test_a_new_schedule_counts_from_now_and_keeps_a_wake(
    patch: dict[str, object], next_at: int
) -> None:
    job = make()
    ticking = Ticking(7, next_at=NOW - 5, wake_at=NOW + 1, since=5)
    changed = reticked(job, patched(job, patch, NOW), ticking, NOW)
    assert changed == Ticking(7, next_at=next_at, wake_at=NOW + 1, since=5)


def test_nobody_waits_for_a_look_that_a_change_has_made_void() -> None:
    job = make()
    looking = Ticking(7, next_at=NOW - 5, claimed_until=NOW + MINUTE)
    changed = reticked(job, patched(job, {"lane": "x"}, NOW), looking, NOW)
    assert changed == Ticking(7, next_at=NOW - 5)


@pytest.mark.parametrize(
    ("schedule", "zone", "shown"),
    [
        (Every(10 * MINUTE, 0), None, "every 10m"),
        (Cron("0 9 * * 1-5", SAO_PAULO), None, "0 9 * * 1-5 (America/Sao_Paulo)"),
        (Cron("0 9 * * 1-5", SAO_PAULO), "UTC", "0 9 * * 1-5 (America/Sao_Paulo)"),
        (At(TOMORROW_9, SAO_PAULO), None, "at 2026-11-16 09:00 (America/Sao_Paulo)"),
        (At(TOMORROW_9 + SECOND, SAO_PAULO), "UTC", "at 2026-11-16 12:00:01 (UTC)"),
    ],
)
def test_a_schedule_for_people(schedule: Schedule, zone: str | None, shown: str) -> None:
    assert describe(schedule, zone) == shown
