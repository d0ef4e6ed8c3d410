"""Answers of the wire turned back into views: nothing of a job or a heartbeat is lost on the way."""

import msgspec
import pytest

from headway.cli.views import heartbeat_view, job_of, job_view
from headway.core.firing import job_view as own_view
from headway.core.heartbeat import read_hours
from headway.core.jobs import new_job
from headway.core.schedule import next_firing
from headway.model.heartbeat import HeartbeatSettings
from headway.model.job import Job, JobRecord, Ticking
from headway.model.payload import Say
from headway.model.run import AgentName, JobId, LaneName, Route
from headway.model.schedule import Every
from headway.model.time import HOUR, MINUTE, SECOND
from headway.model.views import JobView
from headway.model.words import State
from headway.wire.firings import upcoming
from headway.wire.heartbeats import HeartbeatAnswer, heartbeat_answer
from headway.wire.jobs import JobAnswer, job_answer, job_form

NOW = 1_794_000_000_123_456
FIELDS: list[dict[str, object]] = [
    {"cron": "0 9 * * 1-5", "tz": "Europe/Paris", "text": "hi"},
    {"every": "90s", "function": "news", "overlap": "skip", "misfire": "all", "stagger": "10s"},
    {"at": "in 20 minutes", "text": "tea", "lane": "slow", "session": "job", "timeout": "1h"},
    {
        "cron": "@daily", "retries": 0, "max_attempts": 3, "priority": 5, "misfire_window": "2h",
        "command": {"argv": ["a", "b"], "folder": "/x", "environment": {"K": "v"}, "stdin": "in"},
        "deliver": {"channel": "web", "to": "42", "thread": "t", "account": "a"},
        "gate": {"command": ["test", "-f", "x"]}, "enabled": False,
    },
    {"cron": "@daily", "text": "hi", "gate": {"function": "has_mail"}},
]  # fmt: skip


@pytest.mark.parametrize("fields", FIELDS)
def test_c12_a_job_comes_back_as_it_was(fields: dict[str, object]) -> None:
    job = new_job(JobId("j1"), {**fields, "name": "n", "agent": "a"}, NOW, "UTC")
    sent = msgspec.json.encode(job_form(job))
    assert job_of(msgspec.convert({**msgspec.json.decode(sent), "state": STATE}, JobAnswer)) == job


STATE: dict[str, object] = {
    "nextRunAt": None, "lastRunAt": None, "lastOutcome": None, "lastError": "",
    "consecutiveFailures": 0, "unfinished": 0, "paused": "",
}  # fmt: skip


def test_where_a_job_stands_comes_back_too() -> None:
    job = new_job(JobId("j1"), {**FIELDS[0], "name": "n", "agent": "a"}, NOW, "UTC")
    view = JobView(job, NOW, NOW - SECOND, State.FAILED, "boom", 3, 1, "too many failures")
    told = job_answer(view)
    again = msgspec.json.decode(msgspec.json.encode(told), type=JobAnswer)
    assert job_answer(job_view(again)) == told


@pytest.mark.parametrize("fields", FIELDS[:3])
def test_the_next_firing_is_not_met_twice(fields: dict[str, object]) -> None:
    """The wire has milliseconds, a schedule microseconds."""
    job = new_job(JobId("j1"), {**fields, "name": "n", "agent": "a"}, NOW, "UTC")
    view = JobView(job, next_run_at=next_firing(job.schedule, job.stagger, job.id, NOW))
    again = msgspec.json.decode(msgspec.json.encode(job_answer(view)), type=JobAnswer)
    assert upcoming(job_view(again), 3) == upcoming(view, 3)


def test_h1_a_heartbeat_comes_back_as_it_was() -> None:
    settings = HeartbeatSettings(
        interval=20 * MINUTE,
        prompt="look",
        hours=read_hours("22:00-06:00", "Asia/Tokyo"),
        target=Route("web", peer="42"),
        checklist="/x/HEARTBEAT.md",
        ack_max_chars=10,
        lane=LaneName("slow"),
        session="isolated",
        timeout=HOUR,
    )
    job = Job(
        JobId("j1"),
        "heartbeat",
        AgentName("a"),
        Every(settings.interval, NOW),
        Say("look"),
        NOW,
        heartbeat=settings,
    )
    told = heartbeat_answer(own_view(JobRecord(job, Ticking(next_at=NOW))))
    again = msgspec.json.decode(msgspec.json.encode(told), type=HeartbeatAnswer)
    view = heartbeat_view(again)
    assert view.job.heartbeat == settings
    assert heartbeat_answer(view) == told
