"""Programs in real panes of a real tmux (W-1, W-2)."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import TypeVar

import psutil
import pytest
from typer.testing import CliRunner

from headway import Reply, RunFailed
from headway.cli import app
from headway.facade import Headway
from headway.model.errors import WorkerLost, WorkFailed
from headway.model.run import RunId
from headway.model.runner import PaneSpec
from headway.model.time import MILLISECOND
from headway.runners.pane_work import PaneWork
from headway.runners.tmux import PaneRunner
from headway.runners.told import Told
from headway.turn import Sight
from tests.e2e.processes import Process, ended_at_last, worker
from tests.e2e.waiting import until
from tests.e2e.workers.pane_agents import GO, SOCKET, WAITS
from tests.unit.runners.processes import alive
from tests.unit.runners.turns import Ears, turn_with

pytest.importorskip("libtmux", reason="libtmux is not installed: pip install 'headway[tmux]'")
pytestmark = pytest.mark.skipif(
    shutil.which("tmux") is None, reason="tmux is not installed: its tests are skipped"
)

Result = TypeVar("Result")

RUN = RunId("run-1")
STORE = f"store-{os.getpid()}"
DEAF = """
import signal, subprocess, sys, time
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
child = subprocess.Popen(["sleep", "300"])
away = subprocess.Popen(["setsid", "sleep", "301"])
print("ready", child.pid, away.pid, flush=True)
while True:
    time.sleep(1)
"""

STARTS_SLOWLY = """
import os, signal, time
for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
note = __file__.replace(".py", ".pid")
with open(f"{note}.draft", "w") as file:
    file.write(str(os.getpid()))
os.rename(f"{note}.draft", note)
time.sleep(300)
"""


@pytest.fixture
def socket() -> Iterator[str]:
    """The name of a tmux server that nobody else has."""
    name = f"headway-test-{os.getpid()}"
    yield name
    subprocess.run(["tmux", "-L", name, "kill-server"], capture_output=True, check=False)
    folder = Path(os.environ.get("TMUX_TMPDIR") or "/tmp") / f"tmux-{os.getuid()}"
    (folder / name).unlink(missing_ok=True)


@pytest.fixture
def panes(socket: str, tmp_path: Path) -> Callable[..., PaneRunner]:
    """Makes runners with short graces."""

    def make(
        *command: str, agent: str = "coder", store: str = STORE, **options: object
    ) -> PaneRunner:
        said = {"grace": 200 * MILLISECOND, "socket": socket, **options}
        spec = PaneSpec(command=command, **said)  # type: ignore[arg-type]
        return PaneRunner(spec, agent, store, tmp_path)

    return make


MakesPanes = Callable[..., PaneRunner]


def play(main: Coroutine[object, object, Result]) -> Result:
    async def bounded() -> Result:
        async with asyncio.timeout(120):
            return await main

    return asyncio.run(bounded())


def tmux(socket: str, *asked: str) -> str:
    told = subprocess.run(["tmux", "-L", socket, *asked], capture_output=True, check=True)
    return told.stdout.decode()


async def only(runner: PaneRunner) -> Sight:
    (sight,) = await runner.look()
    return sight


def test_w1_the_text_of_a_pane_is_the_reply_and_streamed(panes: MakesPanes, socket: str) -> None:
    async def main() -> None:
        script = 'echo "hello $0, é"; printf "working"; read line; echo " on $line"'
        runner, ears = panes("sh", "-c", script, "{text}"), Ears()
        running = asyncio.create_task(runner.run(turn_with("you; $(exit 1)", desk=ears)))
        await ears.until(r"hello you; \$\(exit 1\), é\nworking")
        sight = await only(runner)
        assert sight.pane == f"{socket}:hw-run-1-1"
        assert (sight.run_id, sight.attempt, sight.over) == (RUN, 1, False)
        assert sight.answers
        assert sight.lines == ("hello you; $(exit 1), é", "working")
        assert runner.has(RUN, 1)
        tmux(socket, "send-keys", "-t", "=hw-run-1-1:", "it", "Enter")
        reply = await running
        assert reply.text.startswith("hello you; $(exit 1), é\nworking")
        assert reply.text.endswith(" on it")
        assert reply.data == {"exit": 0}
        assert ears.heard.endswith(" on it\n")
        sight = await only(runner)
        assert (sight.over, sight.exit_code) == (True, 0)
        assert runner.has(RUN, 1), "nobody has stored yet how it ended"
        runner.forget(RUN, 1)
        await until(lambda: not runner.has(RUN, 1), "it is forgotten")

    play(main())


def test_w1_all_of_a_quick_answer_arrives(panes: MakesPanes) -> None:
    """The system throws away what a terminal holds when its first process ends; not so here."""

    async def main() -> Reply:
        return await panes("seq", "1", "3000").run(turn_with())

    assert play(main()).text == "\n".join(str(number) for number in range(1, 3001))


def test_w1_what_is_kept_is_bounded(panes: MakesPanes) -> None:
    async def main() -> Reply:
        return await panes("seq", "1", "100000", output=4096).run(turn_with())

    reply = play(main())
    assert reply.text.endswith("99999\n100000")
    assert len(reply.text) <= 4096
    assert isinstance(reply.data, dict)
    assert reply.data["exit"] == 0


def test_w1_a_pane_is_told_about_its_run(
    panes: MakesPanes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """X-4 also. What the server of tmux was started with is not for later runs."""

    async def environment(runner: PaneRunner, run_id: str) -> dict[str, str]:
        reply = await runner.run(turn_with(run_id=run_id))
        return dict(line.partition("=")[::2] for line in reply.text.splitlines())

    async def main() -> None:
        monkeypatch.setenv("OLD_SECRET", "of the first run")
        monkeypatch.setenv("LINES", "7")
        first = await environment(panes("env", environment={"OWN": "{session}"}), "run-1")
        monkeypatch.delenv("OLD_SECRET")
        monkeypatch.setenv("NEW_SECRET", "x" * 150)
        second = await environment(panes("env", folder=str(tmp_path)), "run-2")
        assert first["OLD_SECRET"] == "of the first run"
        assert first["OWN"] == "chat:ann"
        assert "LINES" not in first
        assert "OLD_SECRET" not in second
        assert second["NEW_SECRET"] == "x" * 150
        for told, run_id in ((first, "run-1"), (second, "run-2")):
            assert told["HEADWAY_RUN_ID"] == run_id
            assert told["HEADWAY_FENCE"] == "1.7"
            assert told["TMUX_PANE"].startswith("%")
        assert not list(tmp_path.rglob("*.json")), "what was to be run is not left lying about"

    play(main())


@pytest.mark.parametrize("folder", ["", "inner", "/"])
def test_w1_a_pane_is_in_its_folder_as_the_server_sees_it(
    socket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    """tmux itself is started elsewhere; nor does it know what a state folder is relative to."""
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path)
    spec = PaneSpec(command=("pwd",), socket=socket, folder=folder)
    runner = PaneRunner(spec, "coder", STORE, Path("state"))

    async def main() -> Reply:
        return await runner.run(turn_with())

    assert play(main()).text == str(tmp_path / folder)


def test_w1_a_long_text_is_no_problem_for_tmux(panes: MakesPanes) -> None:
    async def main() -> Reply:
        runner = panes(sys.executable, "-c", "import sys; print(len(sys.argv[1]))", "{text}")
        return await runner.run(turn_with("x;" * 40_000))

    assert play(main()).text == "80000"


def test_w1_exit_code_and_output_are_in_the_failure(panes: MakesPanes) -> None:
    async def main() -> None:
        await panes("sh", "-c", "echo no such page; exit 3").run(turn_with())

    with pytest.raises(WorkFailed, match=r"^exit code 3: no such page$") as failure:
        play(main())
    assert failure.value.code == "command_failed"
    assert failure.value.details == {"exit": 3, "output": "no such page"}


@pytest.mark.parametrize("resume", [(), ("tool", "--resume")])
def test_w3_a_program_that_something_killed(panes: MakesPanes, resume: tuple[str, ...]) -> None:
    async def main() -> None:
        await panes("sh", "-c", "kill -9 $$", resume=resume).run(turn_with())

    with pytest.raises(WorkerLost if resume else WorkFailed, match="ended by SIGKILL"):
        play(main())


def test_w3_a_later_attempt_resumes(panes: MakesPanes) -> None:
    async def main() -> Reply:
        runner = panes("echo", "anew", resume=("echo", "again", "{session_uuid}"))
        return await runner.run(turn_with(attempt=2))

    assert play(main()).text.startswith("again ")


@pytest.mark.parametrize(
    ("command", "folder", "reason"),
    [
        ("no-such-program", "", "No such file or directory"),
        ("true", "/no/such/folder", "there is no folder '/no/such/folder'"),
        ("/", "", "Permission denied"),
    ],
)
def test_what_cannot_be_started_fails_for_good(
    panes: MakesPanes, command: str, folder: str, reason: str
) -> None:
    async def main() -> None:
        await panes(command, folder=folder).run(turn_with())

    with pytest.raises(WorkFailed, match=reason) as failure:
        play(main())
    assert failure.value.permanent
    assert repr(command) in str(failure.value)


def test_w1_a_cancel_ends_all_that_a_deaf_program_started(panes: MakesPanes) -> None:
    async def main() -> None:
        runner, ears = panes(sys.executable, "-c", DEAF), Ears()
        running = asyncio.create_task(runner.run(turn_with(desk=ears)))
        found = await ears.until(r"ready (\d+) (\d+)\n")
        pids = [(await only(runner)).pid, int(found[1]), int(found[2])]
        assert all(map(alive, pids))
        running.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not runner.has(RUN, 1), "nobody may adopt what is about to be ended"
        with pytest.raises(asyncio.CancelledError):
            await running
        assert not any(map(alive, pids))
        assert await runner.look() == []

    play(main())


def test_w1_a_cancel_reaches_a_pane_that_is_about_to_start_its_program(
    panes: MakesPanes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing has the run in its environment yet, and its first process does not mind that its pane is closed."""
    first = tmp_path / "first.py"
    first.write_text(STARTS_SLOWLY)
    monkeypatch.setattr("headway.runners.pane_work._FIRST_PROCESS", str(first))

    async def never(work: PaneWork, pane: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(PaneWork, "_identify", never)

    async def main() -> int:
        running = asyncio.create_task(panes("true").run(turn_with()))
        note = first.with_suffix(".pid")
        await until(note.exists, "its first process is there")
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return int(note.read_text())

    assert not alive(play(main()))


def test_w1_a_second_cancel_leaves_no_time(panes: MakesPanes) -> None:
    async def main() -> None:
        runner, ears = panes(sys.executable, "-c", DEAF, grace=3600_000 * MILLISECOND), Ears()
        running = asyncio.create_task(runner.run(turn_with(desk=ears)))
        found = await ears.until(r"ready (\d+) (\d+)\n")
        running.cancel()
        await asyncio.wait((running,), timeout=0.2)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert not alive(int(found[1]))
        assert not alive(int(found[2]))

    play(main())


def test_w1_a_program_may_tidy_up_when_it_is_asked(panes: MakesPanes, tmp_path: Path) -> None:
    tidied = tmp_path / "tidied"
    script = f"trap 'echo bye > {tidied}; exit 0' TERM; echo ready; while :; do sleep 0.05; done"

    async def main() -> None:
        ears = Ears()
        runner = panes("sh", "-c", script, grace=20_000 * MILLISECOND)
        running = asyncio.create_task(runner.run(turn_with(desk=ears)))
        await ears.until("ready")
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    play(main())
    assert tidied.read_text() == "bye\n"


def test_w1_what_a_program_leaves_behind_is_ended(panes: MakesPanes) -> None:
    async def main() -> Reply:
        script = "sleep 300 & setsid sleep 301 & echo $!"
        return await panes("sh", "-c", script).run(turn_with())

    assert not alive(int(play(main()).text))


@pytest.mark.parametrize("resume", [(), ("true",)])
def test_w3_a_pane_that_a_person_closed_has_failed_unless_it_can_be_resumed(
    panes: MakesPanes, socket: str, resume: tuple[str, ...]
) -> None:
    async def main() -> None:
        runner, ears = panes(sys.executable, "-c", DEAF, resume=resume), Ears()
        running = asyncio.create_task(runner.run(turn_with(desk=ears)))
        found = await ears.until(r"ready (\d+) (\d+)\n")
        tmux(socket, "kill-pane", "-t", "=hw-run-1-1:")
        with pytest.raises(WorkerLost if resume else WorkFailed, match="its pane was closed"):
            await running
        assert not alive(int(found[1])), "it ignored that its terminal is gone"

    play(main())


def test_a_person_may_split_and_rename(panes: MakesPanes, socket: str, tmp_path: Path) -> None:
    """What is written on the pane counts, not how it is called."""
    go = tmp_path / "go"

    async def main() -> None:
        runner, ears = panes(sys.executable, "-c", WAITS, str(go)), Ears()
        running = asyncio.create_task(runner.run(turn_with(desk=ears)))
        await ears.until("ready")
        tmux(socket, "split-window", "-t", "=hw-run-1-1:", "sleep", "300")
        tmux(socket, "rename-session", "-t", "=hw-run-1-1", "mine | yours")
        assert runner.has(RUN, 1)
        assert (await only(runner)).pane == f"{socket}:mine | yours"
        go.touch()
        with pytest.raises(WorkFailed, match="exit code 4"):
            await running

    play(main())


def test_two_agents_at_once(panes: MakesPanes) -> None:
    async def main() -> None:
        coder, tester = panes("echo", "one"), panes("echo", "two", agent="tester")
        replies = await asyncio.gather(
            coder.run(turn_with(run_id="run-1")),
            tester.run(turn_with(run_id="run-2", agent="tester")),
        )
        assert [reply.text for reply in replies] == ["one", "two"]
        assert [sight.run_id for sight in await coder.look()] == ["run-1"]
        assert [sight.run_id for sight in await tester.look()] == ["run-2"]

    play(main())


def test_w2_a_headway_with_another_store_touches_nothing(panes: MakesPanes, tmp_path: Path) -> None:
    go = tmp_path / "go"

    async def main() -> None:
        ours, theirs = panes(sys.executable, "-c", WAITS, str(go)), panes("true", store="another")
        ears = Ears()
        running = asyncio.create_task(ours.run(turn_with(desk=ears)))
        await ears.until("ready")
        assert not theirs.has(RUN, 1)
        assert await theirs.look() == []
        await theirs.end(RUN, 1)
        theirs.forget(RUN, 1)
        with pytest.raises(WorkFailed, match="duplicate session"):
            await theirs.run(turn_with(epoch=9))
        assert ours.has(RUN, 1)
        assert not running.done()
        go.touch()
        with pytest.raises(WorkFailed, match="exit code 4"):
            await running

    play(main())


def test_w2_what_outlived_its_process_is_adopted(
    panes: MakesPanes, socket: str, tmp_path: Path
) -> None:
    """`kill -9` between the start and everything else: the same program, its text and its exit code."""
    go = tmp_path / "go"
    program = WAITS.replace("sys.argv[1]", repr(str(go)))
    command = ["tests.e2e.workers.pane_program", socket, str(tmp_path), program, STORE]
    node = Process("node", command, tmp_path)

    async def main() -> None:
        with ended_at_last([node]):
            node.wait_for("ready")
            node.kill()
        runner, ears = panes("echo", "anew"), Ears()
        assert runner.has(RUN, 1)
        before = await only(runner)
        adopting = asyncio.create_task(runner.run(turn_with(epoch=2, adopts=True, desk=ears)))
        await ears.until("ready")
        sight = await only(runner)
        assert sight.adopted
        assert (sight.pid, sight.born) == (before.pid, before.born)
        go.touch()
        with pytest.raises(WorkFailed) as failure:
            await adopting
        assert failure.value.details == {"exit": 4, "output": "ready\nover"}

    play(main())


def test_w2_a_run_goes_on_in_its_pane_over_a_crash_of_its_node(socket: str, tmp_path: Path) -> None:
    """The whole way: `kill -9` of the node, another one on the same machine, one attempt, its real exit code."""
    go, store = tmp_path / "go", f"sqlite:///{tmp_path}/work.db"
    told = {SOCKET: socket, GO: str(go), "HEADWAY_STATE": str(tmp_path / "state")}
    nodes: list[Process] = []

    def start(name: str) -> Process:
        node = worker(name, "tests.e2e.workers.pane_agents:hw", store, tmp_path, told)
        nodes.append(node)
        node.wait_for("runs")
        return node

    def fences() -> list[str]:
        return tmux(socket, "list-panes", "-a", "-F", "#{@headway_fence}").split()

    async def main() -> None:
        first = start("first")
        headway = Headway(store)
        headway.remote_agent("coder")
        async with headway:
            run = await headway.submit("coder", "work")
            name = f"=hw-{run.id}-1"
            has = ["tmux", "-L", socket, "has-session", "-t", name]
            await until(
                lambda: subprocess.run(has, capture_output=True, check=False).returncode == 0,
                "it has a pane",
            )
            await until(lambda: len(fences()) == 1, "its pane says whose it is")
            (before,) = fences()
            first.kill()
            start("second")
            await until(lambda: fences() != [before], "the second node has adopted it")
            go.touch()
            outcome = await run.wait()
            assert outcome.details == {"exit": 4, "output": "ready\nover"}
            assert (await headway.run(run)).attempt == 1
            await until(
                lambda: subprocess.run(has, capture_output=True, check=False).returncode != 0,
                "its pane is closed when all is stored",
            )

    with ended_at_last(nodes):
        play(main())


def test_w2_panes_of_a_store_in_memory_end_with_its_process(
    panes: MakesPanes, socket: str, tmp_path: Path
) -> None:
    """Nobody can ever know of them: whoever looks next ends them, and not those of living processes."""
    command = ["tests.e2e.workers.pane_program", socket, str(tmp_path), DEAF, "memory"]
    node = Process("node", command, tmp_path)

    async def main() -> None:
        other = panes("true", store="another")
        with ended_at_last([node]):
            node.wait_for("ready")
            assert await other.look() == []
            tmux(socket, "has-session", "-t", "=hw-run-1-1")
            node.kill()
        assert not panes("true").has(RUN, 1)
        assert await other.look() == []
        with pytest.raises(subprocess.CalledProcessError):
            tmux(socket, "has-session", "-t", "=hw-run-1-1")

    play(main())


def test_w2_who_ended_meanwhile_is_collected(panes: MakesPanes) -> None:
    async def main() -> Reply:
        reply = await panes("echo", "done").run(turn_with())
        again = await panes("echo", "anew").run(turn_with(epoch=2, adopts=True))
        assert again == reply
        return again

    assert play(main()) == Reply("done", data={"exit": 0})


def test_w2_a_pane_that_is_gone_cannot_be_adopted(panes: MakesPanes) -> None:
    async def main() -> None:
        await panes("true").run(turn_with(adopts=True))

    with pytest.raises(WorkerLost, match="its pane was closed"):
        play(main())


def test_w2_a_frozen_node_that_thaws_touches_nothing(panes: MakesPanes, tmp_path: Path) -> None:
    """The old node still runs it, the new one has adopted it: the old one's cancel ends nothing."""
    go = tmp_path / "go"

    async def main() -> None:
        old, new = (panes(sys.executable, "-c", WAITS, str(go)) for _ in range(2))
        heard = Ears(), Ears()
        first = asyncio.create_task(old.run(turn_with(epoch=1, desk=heard[0])))
        await heard[0].until("ready")
        second = asyncio.create_task(new.run(turn_with(epoch=2, adopts=True, desk=heard[1])))
        await heard[1].until("ready")
        first.cancel()
        with pytest.raises((asyncio.CancelledError, WorkerLost)):
            await first
        with pytest.raises(WorkerLost, match="another node has taken it over"):
            await old.run(turn_with(epoch=1, adopts=True))
        with pytest.raises(WorkerLost, match="another node has taken it over"):
            await old.run(turn_with(epoch=1))
        go.touch()
        with pytest.raises(WorkFailed, match="exit code 4"):
            await second

    play(main())


def test_w2_a_try_that_begins_anew_ends_what_is_left(panes: MakesPanes) -> None:
    async def main() -> None:
        runner, ears = panes(sys.executable, "-c", DEAF), Ears()
        abandoned = asyncio.create_task(runner.run(turn_with(desk=ears)))
        found = await ears.until(r"ready (\d+) (\d+)\n")
        reply = await panes("echo", "anew").run(turn_with(attempt=2, epoch=2))
        assert reply.text == "anew"
        assert not alive(int(found[1]))
        assert not alive(int(found[2]))
        with pytest.raises(WorkerLost):
            await abandoned

    play(main())


def test_w1_what_a_killed_server_left_unread_is_removed_by_a_look(
    panes: MakesPanes, tmp_path: Path
) -> None:
    runner = panes("true")
    told = Told(tmp_path / "panes" / STORE / "coder", "hw-run-9-1")
    told.write("secret")
    told.let_go()
    assert play(runner.look()) == []
    assert not told.file.exists()


def test_d8_an_unwanted_worker_is_ended(panes: MakesPanes) -> None:
    async def main() -> None:
        runner, ears = panes(sys.executable, "-c", DEAF), Ears()
        running = asyncio.create_task(runner.run(turn_with(desk=ears)))
        found = await ears.until(r"ready (\d+) (\d+)\n")
        await runner.end(RUN, 1)
        assert not alive(int(found[1]))
        assert not alive(int(found[2]))
        with pytest.raises(WorkerLost):
            await running

    play(main())


def test_d8_a_stopped_worker_shows_no_sign_of_life(panes: MakesPanes) -> None:
    async def main() -> None:
        runner, ears = panes(sys.executable, "-c", "print('ready'); input()"), Ears()
        running = asyncio.create_task(runner.run(turn_with(desk=ears)))
        await ears.until("ready")
        sight = await only(runner)
        assert sight.busy is None, "not known at the first look"

        async def rests() -> bool:
            return (await only(runner)).busy is False

        await until(rests, "it waits for what is typed")
        (program,) = psutil.Process(sight.pid).children()
        program.send_signal(signal.SIGSTOP)

        async def silent() -> bool:
            return not (await only(runner)).answers

        await until(silent, "it is stopped")
        program.send_signal(signal.SIGCONT)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    play(main())


def test_d8_a_tmux_that_does_not_answer_is_waited_for(
    panes: MakesPanes, socket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = tmp_path / "go"

    async def main() -> None:
        runner, ears = panes(sys.executable, "-c", WAITS, str(go)), Ears()
        running = asyncio.create_task(runner.run(turn_with(desk=ears)))
        await ears.until("ready")
        assert (await only(runner)).answers
        server = int(tmux(socket, "display-message", "-p", "#{pid}"))
        os.kill(server, signal.SIGSTOP)
        # Impatient only now: a busy machine takes longer to answer than this.
        with monkeypatch.context() as impatient:
            impatient.setattr("headway.runners.panes._ANSWERS_WITHIN_S", 0.1)
            impatient.setattr("headway.runners.panes._HOLDS_UP_S", 2)
            try:
                assert not (await only(runner)).answers
                began_at = time.monotonic()
                assert not any(runner.has(RUN, attempt) for attempt in range(1, 9))
                assert time.monotonic() - began_at < 12, "nobody waits for each of them"
                go.touch()
                await asyncio.wait((running,), timeout=0.5)
                assert not running.done()
            finally:
                os.kill(server, signal.SIGCONT)
        with pytest.raises(WorkFailed) as failure:
            await running
        assert failure.value.details == {"exit": 4, "output": "ready\nover"}

    play(main())


def test_w1_headway_attach_names_the_pane(socket: str, tmp_path: Path) -> None:
    """With an engine: the pane is there while the run is, the outcome has code and output."""
    go = tmp_path / "go"
    headway = Headway()
    headway.tmux_agent("coder", [sys.executable, "-c", WAITS, str(go)], socket=socket)

    async def attach(run: str, *options: str) -> tuple[int, str]:
        asked = ["attach", run, "--socket", socket, *options]
        told = await asyncio.to_thread(CliRunner().invoke, app, asked)
        return told.exit_code, told.output

    async def main() -> None:
        async with headway:
            handle = await headway.submit("coder", "work")
            async for piece in handle.stream():
                assert piece.startswith("ready")
                break
            session = f"hw-{handle.id}-1"
            tmux(socket, "has-session", "-t", f"={session}")
            command = f"tmux -L {socket} attach-session -t ={session}\n"
            assert await attach(handle.id, "--print") == (0, command)
            assert " -r " in (await attach(handle.id, "--print", "--read-only"))[1]
            code, said = await attach(handle.id)
            assert code == 2
            assert "no terminal" in said
            go.touch()
            with pytest.raises(RunFailed) as failure:
                await handle.reply()
            outcome = failure.value.outcome
            assert outcome.code == "command_failed"
            assert outcome.details == {"exit": 4, "output": "ready\nover"}

    play(main())
