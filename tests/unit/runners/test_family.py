"""All processes of a worker are found, and nobody else's (W-1, W-2)."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from headway.runners import family
from headway.runners.family import Leader

MARK = ("HEADWAY_TEST_MARK", f"of {os.getpid()}")
PROGRAM = """
import os, subprocess, sys, time
quiet = {"stdout": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
unmarked = {name: value for name, value in os.environ.items() if name != "HEADWAY_TEST_MARK"}
child = subprocess.Popen(["sleep", "60"], env=unmarked, **quiet)
away = subprocess.Popen(["sleep", "60"], start_new_session=True, **quiet)
print(child.pid, away.pid, flush=True)
time.sleep(60)
"""


@pytest.fixture
def started() -> Iterator[tuple[subprocess.Popen[str], set[int]]]:
    """A leader, with one child in its session and one that left it."""
    leader = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, MARK[0]: MARK[1]},
        stdout=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    assert leader.stdout is not None
    children = {int(pid) for pid in leader.stdout.readline().split()}
    yield leader, children
    for pid in (leader.pid, *children):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    leader.wait()
    leader.stdout.close()


def found(leader: Leader, *marks: tuple[str, str]) -> set[int]:
    return {process.pid for process in family.family(leader, marks)}


def leader_of(process: subprocess.Popen[str]) -> Leader:
    born = family.born(process.pid)
    assert born is not None
    return Leader(process.pid, born)


def test_w1_a_family_is_all_that_descends_from_its_leader(
    started: tuple[subprocess.Popen[str], set[int]],
) -> None:
    leader, children = started
    assert found(leader_of(leader)) == {leader.pid, *children}
    assert family.lives(leader_of(leader))


def test_w1_what_left_is_found_by_its_environment_after_the_leaders_end(
    started: tuple[subprocess.Popen[str], set[int]],
) -> None:
    leader, children = started
    identity = leader_of(leader)
    leader.kill()
    leader.wait()
    assert not family.lives(identity)
    assert len(found(identity)) == 1, "who stayed in the session"
    assert found(identity, MARK) == children
    family.send(family.family(identity, [MARK]), signal.SIGKILL)
    while found(identity, MARK):
        pass


def test_w2_a_reused_number_is_another_process(
    started: tuple[subprocess.Popen[str], set[int]],
) -> None:
    leader, _ = started
    earlier = Leader(leader.pid, leader_of(leader).born - 1)
    assert not family.lives(earlier)
    assert found(earlier) == set()
    assert not family.activity(earlier).goes_on


def test_who_asks_is_spared() -> None:
    born = family.born(os.getpid())
    assert born is not None
    leader = Leader(os.getpid(), born)
    assert os.getpid() not in {process.pid for process in family.family(leader, ())}


def test_a_number_of_nobody() -> None:
    assert family.born(2**22 + 1) is None
    assert family.family(Leader(0, 0), ()) == []


def test_d8_a_stopped_worker_does_not_go_on(
    started: tuple[subprocess.Popen[str], set[int]],
) -> None:
    leader, children = started
    identity = leader_of(leader)
    assert family.activity(identity).goes_on
    for pid in children:
        os.kill(pid, signal.SIGSTOP)
    while family.activity(identity).goes_on:
        pass
    for pid in children:
        os.kill(pid, signal.SIGCONT)
    while not family.activity(identity).goes_on:
        pass
