"""Jobs in words: one that nobody fires is not called enabled."""

from headway.cli.jobs.telling import job_lines, state_text
from headway.core.jobs import new_job
from headway.model.run import JobId
from headway.model.time import MINUTE, SECOND
from headway.model.views import JobView

NOW = 1_794_000_000_000_000


def due_at(at: int) -> JobView:
    fields = {"name": "n", "agent": "nobody", "every": "1m", "text": "hi"}
    return JobView(new_job(JobId("j1"), fields, NOW - MINUTE, "UTC"), next_run_at=at)


def test_a_job_that_is_overdue_says_so() -> None:
    assert state_text(due_at(NOW - 9 * SECOND), NOW) == "enabled"
    assert state_text(due_at(NOW - 11 * SECOND), NOW) == "overdue: no node fires it"


def test_only_the_first_of_its_next_firings_is_in_the_past() -> None:
    text = job_lines(due_at(NOW - 10 * MINUTE), NOW)
    assert text.count(" ago)") == 1
    assert text.count("(in ") == 2
