"""Jobs go out and come back equal; whatever a file holds, it becomes jobs and a report (C-12)."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from headway.core.crontab import read_crontab
from headway.core.job_files import job_data, read_jobs, write_jobs
from headway.core.jobs import HEARTBEAT, new_job, patched
from headway.model.job import Job
from headway.model.payload import Ask, Execute, Gate, Say
from headway.model.run import AgentName, JobId, LaneName, Route
from headway.model.schedule import At, Cron, Every
from headway.model.time import DAY, as_timedelta
from headway.model.words import Misfire, Overlap

NOW = 1_780_000_000_000_001
ZONES = st.sampled_from(["UTC", "America/Sao_Paulo", "Australia/Lord_Howe"])
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
NAMES = TEXTS.filter(bool)
ENVIRONMENTS = st.dictionaries(st.from_regex(r"[A-Z_][A-Z0-9_]{0,5}", fullmatch=True), TEXTS)
ARGVS = st.lists(TEXTS, max_size=3).flatmap(
    lambda rest: NAMES.map(lambda program: (program, *rest))
)
INSTANTS = st.integers(0, 200_000_000_000_000_000)
SPANS = st.integers(0, 40 * DAY)
SCHEDULES = st.one_of(
    st.builds(At, st.integers(NOW + 1, 200_000_000_000_000_000), ZONES),
    st.builds(Every, st.integers(1, 40 * DAY), INSTANTS, ZONES),
    st.builds(
        Cron, st.sampled_from(["0 9 * * 1-5", "*/5 * * * *", "0 0 29 2 *", "@daily"]), ZONES
    ).filter(lambda cron: not cron.expression.startswith("@")),
)
PAYLOADS = st.one_of(
    st.builds(Say, TEXTS.filter(str.strip)),
    st.builds(Ask, NAMES),
    st.builds(Execute, ARGVS, TEXTS, ENVIRONMENTS.map(lambda named: tuple(named.items())), TEXTS),
)
GATES = st.one_of(
    st.builds(Gate, function=NAMES),
    st.builds(Gate, argv=ARGVS),
)
JOBS = st.builds(
    Job,
    id=NAMES.map(JobId),
    name=NAMES.filter(lambda name: name != HEARTBEAT),
    agent=NAMES.map(AgentName),
    schedule=SCHEDULES,
    payload=PAYLOADS,
    created_at=INSTANTS,
    enabled=st.booleans(),
    lane=st.none() | NAMES.map(LaneName),
    session=st.sampled_from(["isolated", "job"]) | NAMES,
    timeout=st.none() | st.integers(1, 40 * DAY),
    retries=st.none() | st.integers(0, 1000),
    max_attempts=st.none() | st.integers(1, 1000),
    priority=st.none() | st.integers(-100, 100),
    overlap=st.sampled_from(Overlap),
    misfire=st.sampled_from(Misfire),
    misfire_window=SPANS,
    stagger=SPANS,
    deliver=st.none() | st.builds(Route, NAMES, TEXTS, TEXTS, TEXTS),
    delete_after_run=st.booleans(),
    gate=st.none() | GATES,
    declared=st.booleans(),
)


def no_id() -> JobId:
    raise AssertionError("every job has an id")


@given(jobs=st.lists(JOBS, max_size=4, unique_by=(lambda job: job.id, lambda job: job.name)))
def test_c12_what_is_written_and_read_again_gives_equal_jobs(jobs: list[Job]) -> None:
    file = read_jobs(write_jobs(jobs), NOW, "Asia/Tokyo", no_id)
    assert list(file.jobs) == jobs
    assert file.problems == ()


FIELDS = (
    *("name", "agent", "schedule", "enabled", "lane", "session", "retries", "max_attempts"),
    *("priority", "overlap", "misfire", "deliver", "gate", "delete_after_run"),
)


@given(before=JOBS, after=JOBS)
def test_a_patch_of_every_field_makes_one_job_of_another(before: Job, after: Job) -> None:
    after = msgspec.structs.replace(
        after, id=before.id, created_at=before.created_at, declared=before.declared
    )
    patch: dict[str, object] = {field: getattr(after, field) for field in FIELDS}
    for field in ("timeout", "stagger", "misfire_window"):
        span = getattr(after, field)
        patch[field] = None if span is None else as_timedelta(span)
    match after.payload:
        case Say(text):
            patch["text"] = text
        case Ask(function):
            patch["function"] = function
        case Execute():
            patch["command"] = after.payload
    assert patched(before, patch, NOW) == after


@given(job=JOBS, other=JOBS)
def test_a_patch_touches_only_what_it_names(job: Job, other: Job) -> None:
    for field in FIELDS:
        changed = patched(job, {field: getattr(other, field)}, NOW)
        same = {"delete_after_run": job.delete_after_run, field: getattr(job, field)}
        assert msgspec.structs.replace(changed, **same) == job


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
KEYS = st.sampled_from(
    [
        *("id", "name", "agentId", "enabled", "schedule", "payload", "deleteAfterRun", "lane"),
        *("timeoutMs", "staggerMs", "deliver", "gate", "createdAtMs", "declared", "retries"),
        *("sessionTarget", "sessionKey", "wakeMode", "delivery", "state", "trigger", "jobId"),
    ]
)


@given(job=JOBS, changes=st.dictionaries(KEYS, JSON, max_size=3), wrapped=st.booleans())
def test_whatever_stands_in_a_file_each_job_is_taken_or_reported(
    job: Job, changes: dict[str, object], wrapped: bool
) -> None:
    jobs = [{**job_data(job), **changes}]
    text = msgspec.json.Encoder(decimal_format="number").encode({"jobs": jobs} if wrapped else jobs)
    file = read_jobs(text, NOW, "Asia/Tokyo", lambda: JobId("new"), "bob")
    assert len(file.jobs) + sum(not problem.taken for problem in file.problems) == 1
    assert all(problem.path.startswith("jobs[0]") for problem in file.problems)


PIECES = st.sampled_from(
    [
        *("*", "*/5", "99", "1-5", "mon", "@daily", "@reboot", "#", "-", "%", "\\%", "\\", '"'),
        *("CRON_TZ=", "TZ", "=", "UTC", "Nowhere", "SHELL=", "MAILTO=x", "root", "x", "\0", "é"),
        *("* * * * *", "* * * * * ", " ", " ", "\t", "\n", "\n", "\r\n", "\ud800"),
    ]
)


@given(text=st.lists(PIECES, max_size=40).map("".join), user_column=st.booleans())
def test_whatever_a_crontab_holds_each_line_is_a_job_or_a_problem(
    text: str, user_column: bool
) -> None:
    table = read_crontab(text, "ops", NOW, "UTC", user_column)
    names = [new_job(JobId("j"), fields, NOW, "UTC").name for fields in table.jobs]
    assert len(set(names)) == len(names)
    lines = text.split("\n")
    assert all(lines[found.line - 1].strip() == found.text for found in table.problems)
