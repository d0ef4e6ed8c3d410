"""What may be said about a job, in full or short, comes to the same (C-13)."""

import msgspec
import pytest

from headway.core.jobs import new_job
from headway.model.errors import InvalidInput
from headway.model.job import Job
from headway.model.run import JobId
from headway.wire.job_requests import (
    JobEdit,
    JobPatch,
    JobRequest,
    commands,
    job_fields,
    said_field,
)

NOW = 1_763_204_400_000_000
BARE: dict[str, object] = {"name": "brief", "agentId": "support"}


def request(**said: object) -> JobRequest:
    return msgspec.convert({**BARE, **said}, JobRequest)


def job(**said: object) -> Job:
    return new_job(JobId("j-1"), job_fields(request(**said)), NOW, "UTC")


@pytest.mark.parametrize(
    ("short", "full"),
    [
        (
            {"cron": "0 9 * * *", "tz": "Europe/Paris", "text": "x"},
            {
                "schedule": {"kind": "cron", "expr": "0 9 * * *", "tz": "Europe/Paris"},
                "payload": {"kind": "message", "text": "x"},
            },
        ),
        (
            {
                "every": "90s",
                "function": "f",
                "timeout": "5m",
                "stagger": "0",
                "misfireWindow": "2d",
            },
            {
                "schedule": {"kind": "every", "everyMs": 90_000},
                "payload": {"kind": "function", "function": "f"},
                "timeoutMs": 300_000,
                "staggerMs": 0,
                "misfireWindowMs": 172_800_000,
            },
        ),
        (
            {"at": "2026-01-01T00:00:00Z", "command": "backup --all"},
            {
                "schedule": {"kind": "at", "atMs": 1_767_225_600_000},
                "payload": {"kind": "command", "argv": ["backup", "--all"]},
            },
        ),
        (
            {"every": "1h", "command": {"argv": ["a"], "environment": {"LANG": "C"}}},
            {
                "every": "1h",
                "payload": {"kind": "command", "argv": ["a"], "environment": {"LANG": "C"}},
            },
        ),
    ],
)
def test_c13_short_and_in_full_are_the_same_job(
    short: dict[str, object], full: dict[str, object]
) -> None:
    assert job(**short) == job(**full)


def test_a_patch_of_a_period_without_an_anchor_keeps_the_beat() -> None:
    edit = msgspec.convert({"job": "j-1", "schedule": {"kind": "every", "everyMs": 1000}}, JobEdit)
    assert job_fields(edit) == {"schedule": {"kind": "every", "everyMs": 1000.0}}


def test_milliseconds_go_before_the_same_in_words() -> None:
    assert job(every="1h", text="x", timeout="5m", timeoutMs=1_000).timeout == 1_000_000


def test_null_is_said_and_absence_is_not() -> None:
    patch = msgspec.convert({"lane": None, "timeoutMs": None}, JobPatch)
    assert job_fields(patch) == {"lane": None, "timeout": None}
    assert job_fields(msgspec.convert({}, JobPatch)) == {}


@pytest.mark.parametrize(
    ("said", "yes"),
    [
        ({"text": "x"}, False),
        ({"text": "x", "gate": {"function": "f"}}, False),
        ({"payload": {"kind": "function", "function": "f"}}, False),
        ({"command": "backup"}, True),
        ({"command": ["backup"]}, True),
        ({"payload": {"kind": "command", "argv": ["backup"]}}, True),
        ({"text": "x", "gate": {"command": ["true"]}}, True),
    ],
)
def test_o4_every_way_to_run_a_program_is_seen(said: dict[str, object], yes: bool) -> None:
    assert commands(request(every="1h", **said)) is yes


@pytest.mark.parametrize(
    ("said", "field", "named"),
    [
        ({"timeoutMs": 5}, "timeout", "timeout_ms"),
        ({"timeout": "5s"}, "timeout", "timeout"),
        ({"payload": {"kind": "message", "text": "x"}}, "text", "payload.text"),
        ({"payload": {"kind": "command", "argv": ["x"]}}, "command.argv", "payload.argv"),
        ({"command": ["x"]}, "command.argv", "command.argv"),
        ({"cron": "x"}, "cron", "cron"),
    ],
)
def test_t2_a_refusal_names_the_field_as_it_was_said(
    said: dict[str, object], field: str, named: str
) -> None:
    assert said_field(request(**said), InvalidInput(field, "x", "another")).field == named
