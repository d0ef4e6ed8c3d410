"""Where jobs are kept: durable rules that make runs over time (C-13)."""

from headway.gateway.endpoint import Endpoint
from headway.gateway.operations import job_files, jobs
from headway.wire.jobs import JobFired

TAG = "Jobs"
STATE = {
    "nextRunAt": "2026-11-16T08:00:00.000Z",
    "lastRunAt": None,
    "lastOutcome": None,
    "lastError": "",
    "consecutiveFailures": 0,
    "unfinished": 0,
    "paused": "",
}
_FORM = {
    "id": "j-9f2k4m",
    "name": "morning brief",
    "agentId": "support",
    "enabled": True,
    "schedule": {"kind": "cron", "expr": "0 9 * * 1-5", "tz": "Europe/Paris"},
    "payload": {"kind": "message", "text": "What is new?"},
    "deleteAfterRun": False,
    "createdAtMs": 1_763_194_800_000,
    "deliver": {"channel": "telegram", "to": "42"},
}
_JOB = {**_FORM, "state": STATE}
_SHORT = {
    "name": "morning brief",
    "agentId": "support",
    "cron": "0 9 * * 1-5",
    "tz": "Europe/Paris",
    "text": "What is new?",
    "deliver": {"channel": "telegram", "to": "42"},
}
ENTRY = {
    "number": 17,
    "job": "j-9f2k4m",
    "dueAt": "2026-11-16T08:00:00.000Z",
    "fired": "on_time",
    "count": 1,
    "reason": "",
    "decidedAt": "2026-11-16T08:00:00.001Z",
    "runId": "1k3f9a2xq-42",
    "state": "done",
    "attempts": 1,
    "startedAt": "2026-11-16T08:00:00.004Z",
    "finishedAt": "2026-11-16T08:00:21.070Z",
    "lateMs": 4,
    "outcome": {
        "state": "done",
        "reason": None,
        "text": "Nothing new.",
        "error": "",
        "tokensIn": 812,
        "tokensOut": 9,
    },
}
_LOG = {"entries": [ENTRY], "cursor": None}


def _fired(answer: object) -> int:
    return 202 if isinstance(answer, JobFired) and answer.run_id is not None else 200


handlers = [
    Endpoint("GET", "/jobs", jobs.list_jobs, TAG, answer_example={"jobs": [_JOB], "cursor": None}),
    Endpoint(
        "POST",
        "/jobs",
        jobs.create_job,
        TAG,
        status=201,
        location="/jobs/{id}",
        refusals=(404, 409),
        asked_example=_SHORT,
        answer_example=_JOB,
    ),
    Endpoint(
        "GET",
        "/jobs/status",
        jobs.jobs_status,
        TAG,
        answer_example={
            "jobs": 12,
            "enabled": 11,
            "paused": 1,
            "failing": 1,
            "unfinished": 2,
            "nextRunAt": "2026-11-16T08:00:00.000Z",
        },
    ),
    Endpoint("GET", "/jobs/runs", jobs.all_jobs_log, TAG, answer_example=_LOG),
    Endpoint(
        "GET",
        "/jobs/export",
        job_files.export_jobs,
        TAG,
        answer_example={"jobs": [_FORM], "cursor": None},
    ),
    Endpoint(
        "POST",
        "/jobs/import",
        job_files.import_jobs,
        TAG,
        asked_example={"form": "crontab", "text": "0 6 * * * backup --all", "agentId": "command"},
        answer_example={"added": [_JOB], "changed": [], "problems": []},
    ),
    Endpoint("GET", "/jobs/{job}", jobs.get_job, TAG, refusals=(404,), answer_example=_JOB),
    Endpoint(
        "PATCH",
        "/jobs/{job}",
        jobs.edit_job,
        TAG,
        refusals=(404, 409),
        asked_example={"cron": "0 8 * * 1-5", "timeout": "5m", "deliver": None},
        answer_example=_JOB,
    ),
    Endpoint(
        "DELETE",
        "/jobs/{job}",
        jobs.remove_job,
        TAG,
        refusals=(404,),
        answer_example={"removed": "j-9f2k4m"},
    ),
    Endpoint(
        "POST",
        "/jobs/{job}/pause",
        jobs.pause_job,
        TAG,
        refusals=(404,),
        answer_example={**_JOB, "enabled": False, "state": {**STATE, "nextRunAt": None}},
    ),
    Endpoint(
        "POST",
        "/jobs/{job}/resume",
        jobs.resume_job,
        TAG,
        refusals=(404, 409),
        answer_example=_JOB,
    ),
    Endpoint(
        "POST",
        "/jobs/{job}/run",
        jobs.run_job,
        TAG,
        status=202,
        also={200: "It was to run only if due, and is not."},
        choose=_fired,
        location="/runs/{runId}",
        refusals=(404,),
        asked_example={"onlyIfDue": False},
        answer_example={"runId": "1k3f9a2xq-42"},
    ),
    Endpoint("GET", "/jobs/{job}/runs", jobs.job_log, TAG, refusals=(404,), answer_example=_LOG),
    Endpoint(
        "GET",
        "/jobs/{job}/next",
        jobs.next_of_job,
        TAG,
        refusals=(404,),
        answer_example={
            "schedule": "0 9 * * 1-5 (Europe/Paris)",
            "firings": [
                {
                    "at": "2026-11-16T08:00:00.000Z",
                    "local": "2026-11-16T09:00:00+01:00",
                    "zone": "Europe/Paris",
                    "note": "",
                }
            ],
        },
    ),
]
