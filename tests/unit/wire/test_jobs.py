"""Jobs as JSON: the same as in an export, with where they stand (C-12)."""

import msgspec
import pytest

from headway.core.job_files import job_data
from headway.model.job import JOB, Job
from headway.model.payload import Ask, Execute, Gate, Payload, Say
from headway.model.run import AgentName, JobId, LaneName, Route
from headway.model.schedule import At, Cron, Every, Schedule
from headway.model.time import DAY, MINUTE, SECOND
from headway.model.views import JobView
from headway.model.words import Misfire, Overlap
from headway.wire.jobs import JobAnswer, job_answer, job_form

NOON = 1_763_204_400_123_456
PLAIN = Job(
    JobId("j-1"),
    "brief",
    AgentName("support"),
    Cron("0 9 * * *", "Europe/Paris"),
    Say("What is new?"),
    NOON,
)
RICH = msgspec.structs.replace(
    PLAIN,
    lane=LaneName("slow"),
    session=JOB,
    timeout=5 * MINUTE,
    retries=0,
    max_attempts=2,
    priority=-5,
    overlap=Overlap.SKIP,
    misfire=Misfire.ALL,
    misfire_window=2 * DAY,
    stagger=1_500,
    deliver=Route("telegram", "bot", "42", "7"),
    delete_after_run=True,
    gate=Gate(argv=("test", "-e", "mail")),
    enabled=False,
    declared=True,
)


def of(schedule: Schedule = PLAIN.schedule, payload: Payload = PLAIN.payload) -> Job:
    return msgspec.structs.replace(PLAIN, schedule=schedule, payload=payload)


@pytest.mark.parametrize(
    "job",
    [
        PLAIN,
        RICH,
        of(At(NOON + SECOND, "UTC")),
        of(Every(90 * SECOND, NOON, "UTC")),
        of(payload=Ask("whats_new")),
        of(payload=Execute(("backup", ""))),
        of(payload=Execute(("backup",), "/srv", (("LANG", "C"),), "in")),
        msgspec.structs.replace(PLAIN, gate=Gate(function="has_mail")),
        msgspec.structs.replace(PLAIN, deliver=Route("web")),
    ],
)
def test_c12_a_job_reads_as_in_an_export(job: Job) -> None:
    written = msgspec.json.encode(job_form(job))
    encoder = msgspec.json.Encoder(decimal_format="number")
    assert msgspec.json.decode(written) == msgspec.json.decode(encoder.encode(job_data(job)))


@pytest.mark.parametrize("job", [PLAIN, RICH])
def test_a_job_read_again_is_the_same_answer(job: Job) -> None:
    answer = job_answer(JobView(job, next_run_at=NOON))
    assert msgspec.json.decode(msgspec.json.encode(answer), type=JobAnswer) == answer


def test_a_paused_job_has_no_next_firing() -> None:
    assert job_answer(JobView(PLAIN, next_run_at=NOON)).state.next_run_at is not None
    assert job_answer(JobView(RICH, next_run_at=NOON)).state.next_run_at is None


def test_what_is_at_its_default_is_left_out_whatever_store_it_comes_from() -> None:
    """Equal values that are other objects, as a database gives them."""
    again = msgspec.json.decode(msgspec.json.encode(PLAIN), type=Job)
    told = msgspec.json.decode(msgspec.json.encode(job_form(again)))
    assert {"session", "misfireWindowMs", "staggerMs", "overlap"} & told.keys() == set()
