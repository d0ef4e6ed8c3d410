"""D-1, D-3, D-4, D-7 in real processes: nothing is lost, whatever is killed, frozen or restarted."""

import os

import pytest

from tests.e2e.chaos.harness import run_chaos

SECONDS = float(os.environ.get("HEADWAY_CHAOS_SECONDS", "60"))
SEED = int(os.environ.get("HEADWAY_CHAOS_SEED", "1"))


@pytest.mark.timeout(SECONDS + 400)
def test_three_nodes_through_kills_freezes_and_database_crashes() -> None:
    report = run_chaos(SECONDS, SEED)
    assert report.violations == [], str(report)
    assert report.runs >= 2000
    assert report.done + report.orphaned == report.runs
    assert report.kills >= 4
    assert report.freezes >= 2
    assert report.database_crashes >= 2
    assert report.repeated > 0, "no attempt was ever repeated: nothing was proved"
