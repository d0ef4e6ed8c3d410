"""The machine as it is now, not since it was started (D-8)."""

from collections import namedtuple

import psutil
import pytest

from headway.model.run import LaneName
from headway.model.views import LaneView
from headway.runtime.machine import Load, Machine, snapshot_of

Times = namedtuple("Times", "user nice system idle iowait guest guest_nice")  # noqa: PYI024 - as psutil has it


def test_d8_cpu_is_what_was_used_since_the_last_look(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    for times, cpu in (
        # For days all cores were busy; that is over.
        (Times(900_000, 0, 90_000, 10_000, 0, 0, 0), 0.0),
        (Times(900_025, 0, 90_000, 10_065, 10, 0, 0), 25.0),
        (Times(900_025, 0, 90_000, 10_165, 10, 0, 0), 0.0),
        # The time of a guest is in that of its user already.
        (Times(900_075, 0, 90_000, 10_215, 10, 50, 0), 50.0),
        # A counter that went back says nothing.
        (Times(900_000, 0, 90_000, 10_000, 0, 50, 0), 0.0),
    ):
        monkeypatch.setattr(psutil, "cpu_times", lambda times=times: times)
        assert machine.look().cpu == cpu


def test_a_look_at_this_machine_makes_sense() -> None:
    seen = Machine().look()
    assert seen.cores >= 1
    assert 0 < seen.memory_used < seen.memory_total
    assert seen.load >= 0


def test_a_snapshot_has_the_fullest_lanes_by_name() -> None:
    lanes = [LaneView(LaneName(f"lane {number:03}"), 9, number % 7, 0) for number in range(500)]
    load = Load(1.0, 2, 3, 4, 5.0)
    taken = snapshot_of(load, lanes, host="here", node=1, at=7, workers=0)
    assert len(taken.lanes) == 100
    assert min(lane.running for lane in taken.lanes) == 5
    assert [lane.name for lane in taken.lanes] == sorted(lane.name for lane in taken.lanes)
