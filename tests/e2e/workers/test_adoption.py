"""Nodes die and freeze while their commands run on, in real processes (W-2, D-7, R-4, X-4)."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

import headway
from headway import Handle, Headway, Outcome, Reason, State
from tests.e2e.ledger import whole_lines
from tests.e2e.processes import Process, ended_at_last, worker
from tests.e2e.waiting import until
from tests.e2e.workers.waiting_agents import FOLDER
from tests.postgres import PostgresServer

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no workers on Windows")

AGENTS = "tests.e2e.workers.waiting_agents:hw"
QUICK = {
    "HEADWAY_LEASE": "5s",
    "HEADWAY_RENEW_EVERY": "300ms",
    "HEADWAY_POLL_EVERY": "300ms",
    "HEADWAY_CANCEL_GRACE": "600ms",
    "HEADWAY_SCAN_EVERY": "300ms",
}


class Scene:
    """One store, one folder of workers, and what the commands left there."""

    def __init__(self, store: str, folder: Path) -> None:
        self.store = store
        self.folder = folder

    def node(self, name: str, machine: str = "here", adoption_grace: str = "10m") -> Process:
        said = {
            **QUICK,
            FOLDER: str(self.folder),
            "HEADWAY_STATE": str(self.folder / machine),
            "HEADWAY_MACHINE": machine,
            "HEADWAY_ADOPTION_GRACE": adoption_grace,
        }
        return worker(name, AGENTS, self.store, self.folder, said)

    def begun(self) -> list[tuple[str, int]]:
        """Which runs' commands began, each with its process."""
        lines = whole_lines(self.folder / "begun")
        return [(run.decode(), int(pid)) for run, pid, _ in (line.split() for line in lines)]

    def go(self) -> None:
        (self.folder / "go").touch()


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    server = PostgresServer()
    server.start()
    yield server
    server.remove()


def asking(store: str) -> Headway:
    hw = Headway(store, name="client")
    hw.remote_agent("waiter")
    return hw


def really_ended(outcome: Outcome) -> bool:
    details = outcome.details
    return (
        (outcome.state, outcome.reason, outcome.code)
        == (State.FAILED, Reason.ERROR, "command_failed")
        and isinstance(details, dict)
        and details["exit"] == 7
        and str(details["output"]).endswith("over")
    )


def lives(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("moment", ["at once", "begun"])
def test_w2_a_killed_nodes_commands_are_adopted_on_sqlite(tmp_path: Path, moment: str) -> None:
    """Killed while the commands are just being started, or when they have begun: one of each, one attempt."""
    scene = Scene(f"sqlite:///{tmp_path}/work.db", tmp_path)

    async def play() -> list[tuple[Outcome, int]]:
        async with asking(scene.store) as hw:
            first = scene.node("first")
            with ended_at_last([first]):
                first.wait_for(" runs ")
                runs = [await hw.submit("waiter", session=f"s{n}") for n in range(4)]
                if moment == "begun":
                    await until(lambda: len(scene.begun()) == 4, "all commands began")
                else:
                    await until(lambda: _running(hw, runs), "a start is stored")
                first.kill()
            second = scene.node("second")
            with ended_at_last([second]):
                second.wait_for(" runs ")
                await until(lambda: len(scene.begun()) == 4, "nothing was lost")
                scene.go()
                ended = [(await run.wait(), (await hw.run(run)).attempt) for run in runs]
                second.end()
        return ended

    ended = headway.run(play())
    begun = [run for run, _ in scene.begun()]
    assert len(begun) == len(set(begun)) == 4, "none was started twice"
    if moment == "begun":
        assert all(really_ended(outcome) and attempt == 1 for outcome, attempt in ended), ended
    else:
        # What had not begun yet is tried again, as messages are: what had is adopted.
        assert all(really_ended(outcome) for outcome, _ in ended), ended
    assert not any((tmp_path / "here").rglob("ended.json")), "what is stored is forgotten"


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_w2_a_worker_that_ended_while_nobody_was_there_is_dead_once_its_run_has_ended(
    tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    """The killed node had written it down as alive; the next one finds only how it ended."""
    sqlite = f"sqlite:///{tmp_path}/work.db"
    store = sqlite if kind == "sqlite" else request.getfixturevalue("server").url
    scene = Scene(store, tmp_path)

    async def play() -> None:
        async with asking(scene.store) as hw:
            first = scene.node("first")
            with ended_at_last([first]):
                first.wait_for(" runs ")
                run = await hw.submit("waiter")
                await until(lambda: _written_down(hw, 1), "its worker is seen")
                first.kill()
            scene.go()
            await until(lambda: any((tmp_path / "here").rglob("ended.json")), "it has ended")
            assert await _written_down(hw, 1)
            second = scene.node("second")
            with ended_at_last([second]):
                assert really_ended(await run.wait())
                await until(lambda: _written_down(hw, 0), "its worker is dead", within_s=5)
                worker = await hw.worker(f"{run.id}.1")
                assert worker is not None
                assert (worker.exit_code, worker.lines[-1]) == (7, "over")
                second.end()

    headway.run(play())


async def _written_down(hw: Headway, count: int) -> bool:
    """Whether so many workers are said to live."""
    return len((await hw.workers()).workers) == count


async def _adopted(hw: Headway, count: int) -> bool:
    return sum(one.adopted for one in (await hw.workers()).workers) == count


async def _running(hw: Headway, runs: list[Handle]) -> bool:
    return any([(await hw.run(run)).state is State.RUNNING for run in runs])


def test_x4_a_frozen_nodes_commands_are_adopted_and_its_late_results_fenced(
    server: PostgresServer, tmp_path: Path
) -> None:
    """The node is stopped past its lease; one on the same machine goes on with its commands."""
    scene = Scene(server.url, tmp_path)

    async def play() -> None:
        early = scene.node("early")
        with ended_at_last([early]):
            early.wait_for(" runs ")
            async with asking(scene.store) as hw:
                runs = [await hw.submit("waiter", session=f"s{n}") for n in range(3)]
                await until(lambda: len(scene.begun()) == 3, "all commands began")
                early.freeze()
                late = scene.node("late")
                with ended_at_last([late]):
                    await until(lambda: _adopted(hw, 3), "late goes on with all of them")
                    early.thaw()
                    await until(lambda: "NodeDied" in early.printed, "early knows that it is dead")
                    assert all(lives(pid) for _, pid in scene.begun()), "early ended none of them"
                    scene.go()
                    for run in runs:
                        assert really_ended(await run.wait())
                        assert (await hw.run(run)).attempt == 1
                    assert len(scene.begun()) == 3
                    assert (late.end(), early.end()) == (0, 0)

    headway.run(play())


def test_w2_another_machine_waits_for_the_grace_and_then_takes_over(
    server: PostgresServer, tmp_path: Path
) -> None:
    """Messages have two attempts: the second one is the other machine's. The first's command is ended at last."""
    scene = Scene(server.url, tmp_path)

    async def play() -> None:
        there = scene.node("there", "there", adoption_grace="8s")
        with ended_at_last([there]):
            there.wait_for(" runs ")
            async with asking(scene.store) as hw:
                run = await hw.submit("waiter", session="s")
                await until(lambda: len(scene.begun()) == 1, "its command began")
                here = scene.node("here", "here", adoption_grace="8s")
                with ended_at_last([here]):
                    here.wait_for(" runs ")
                    there.kill()
                    await until(lambda: "NodeDead" in here.printed, "here has buried there")
                    assert (await hw.run(run)).state is State.QUEUED, "it waits for its machine"
                    assert len(scene.begun()) == 1
                    await until(lambda: len(scene.begun()) == 2, "the grace is over")
                    assert (await hw.run(run)).attempt == 2
                    (_, first), (_, second) = scene.begun()
                    back = scene.node("back", "there", adoption_grace="8s")
                    with ended_at_last([back]):
                        await until(lambda: not lives(first), "its own machine ends the first one")
                        await until(lambda: "OrphanEnded" in back.printed, "it says so")
                        assert lives(second)
                        scene.go()
                        assert really_ended(await run.wait())
                        back.end()
                    here.end()

    headway.run(play())
    assert os.path.lexists(tmp_path / "there"), "each machine has a state folder of its own"
