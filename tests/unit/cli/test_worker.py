"""`headway worker`: finding the user's agents, and what each signal does."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway import Headway, InvalidInput, InvariantBroken, Refused, Turn
from headway.cli.worker.agents import AgentsNotFound, check_runnable, find_headway
from headway.cli.worker.service import Service
from headway.model.time import SECOND
from headway.testing import virtual_time

MODULES = iter(f"users_agents_{number}" for number in range(1000))


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a module of the user's, in the current folder; each test writes its own."""
    monkeypatch.chdir(tmp_path)
    name = next(MODULES)
    path = list(sys.path)
    yield name
    sys.path[:] = path
    sys.modules.pop(name, None)


def write(name: str, source: str) -> None:
    Path(f"{name}.py").write_text(source, encoding="utf-8")


class TestFindingAgents:
    def test_the_object_is_found_in_the_current_folder(self, module: str) -> None:
        write(module, "from headway import Headway\nhw = Headway()\n")
        assert isinstance(find_headway(f"{module}:hw"), Headway)

    def test_it_may_be_inside_something_else(self, module: str) -> None:
        write(module, "from headway import Headway\nclass App:\n    hw = Headway()\n")
        assert isinstance(find_headway(f"{module}:App.hw"), Headway)

    @pytest.mark.parametrize(
        "written", ["agents", "agents:", ":hw", "a b:hw", "agents.py:hw:x", ""]
    )
    def test_another_form_is_refused(self, written: str) -> None:
        with pytest.raises(InvalidInput, match="written module:name"):
            find_headway(written)

    def test_no_such_module(self, module: str) -> None:
        with pytest.raises(AgentsNotFound, match=f"no module '{module}' in {Path.cwd()}"):
            find_headway(f"{module}:hw")

    def test_no_such_package(self, module: str) -> None:
        with pytest.raises(AgentsNotFound, match=f"no module '{module}'"):
            find_headway(f"{module}.agents:hw")

    def test_a_module_that_imports_what_is_missing_is_not_taken_for_missing(
        self, module: str
    ) -> None:
        write(module, "import os\nimport not_installed_at_all\n")
        with pytest.raises(AgentsNotFound) as refusal:
            find_headway(f"{module}:hw")
        assert f"{module}.py, line 2: ModuleNotFoundError" in str(refusal.value)
        assert "not_installed_at_all" in str(refusal.value)

    def test_a_module_that_raises_says_where(self, module: str) -> None:
        write(module, "hw = 1\nraise ValueError('no key')\n")
        with pytest.raises(AgentsNotFound, match=rf"{module}\.py, line 2: ValueError: no key"):
            find_headway(f"{module}:hw")

    def test_what_headway_refuses_is_told_at_the_line_that_says_it(self, module: str) -> None:
        write(module, "import headway\nhw = headway.Headway()\nhw.agent('a', timout='5s')\n")
        with pytest.raises(AgentsNotFound, match=rf"{module}\.py, line 3: UnknownOption: timout"):
            find_headway(f"{module}:hw")

    def test_a_module_that_cannot_be_read_says_where(self, module: str) -> None:
        write(module, "import os\nhw = = 1\n")
        with pytest.raises(AgentsNotFound, match=rf"{module}\.py, line 2: SyntaxError"):
            find_headway(f"{module}:hw")

    @pytest.mark.parametrize(
        ("name", "hint"),
        [("hw2", "did you mean 'hw'"), ("application", "there is: hw"), ("text", "of type str")],
    )
    def test_another_name_is_suggested(self, module: str, name: str, hint: str) -> None:
        write(module, "from headway import Headway\nhw = Headway()\ntext = 'x'\n")
        with pytest.raises(AgentsNotFound, match=hint):
            find_headway(f"{module}:{name}")

    def test_a_module_without_any_headway_says_so(self, module: str) -> None:
        write(module, "x = 1\n")
        with pytest.raises(AgentsNotFound, match="there is no Headway in it"):
            find_headway(f"{module}:hw")

    def test_a_node_that_could_never_get_work_is_refused(self) -> None:
        hw = Headway("sqlite:///never-made.db")
        with pytest.raises(Refused, match="no agent is registered"):
            check_runnable("agents:hw", hw)
        hw.agent("support")(_support)
        check_runnable("agents:hw", hw)
        hw.use_store("memory://")
        with pytest.raises(Refused, match="give --store URL or set HEADWAY_STORE"):
            check_runnable("agents:hw", hw)


async def _support(turn: Turn) -> str:
    await asyncio.sleep(float(turn.text))
    return turn.text


class Node:
    """A service with its lines, on a `Headway` in memory."""

    def __init__(self, grace_s: int = 30) -> None:
        self.headway = Headway(name="desk")
        self.headway.agent("support")(_support)
        self.said: list[str] = []
        self.service = Service(self.headway, grace_s * SECOND, self.said.append)

    async def sleeping(self, *seconds: float) -> None:
        """Turns that are running, each in a session of its own."""
        for length in seconds:
            await self.headway.submit("support", str(length))
        await asyncio.sleep(0.1)


class TestSignals:
    @virtual_time
    async def test_it_says_where_it_is_and_what_it_uses(self) -> None:
        node = Node()
        async with asyncio.TaskGroup() as group:
            group.create_task(node.service.serve())
            await asyncio.sleep(1)
            node.service.stop()
        assert node.said == [
            "node 1 (desk) runs support on memory://",
            "stopping: nothing runs",
            "stopped; nothing is kept, as its store was memory",
        ]

    @virtual_time
    async def test_l5_the_first_signal_waits_for_running_turns_and_tells_the_progress(self) -> None:
        node = Node()
        async with asyncio.TaskGroup() as group:
            serving = group.create_task(node.service.serve())
            await asyncio.sleep(1)
            await node.sleeping(7, 12)
            node.service.stop()
            await asyncio.sleep(11.5)
            assert not serving.done()
        assert node.said[1:-1] == [
            "stopping: waiting for 2 running turns, up to 30s",
            "still waiting for 2 running turns, up to 25s",
            "still waiting for 1 running turn, up to 20s",
        ]

    @virtual_time
    async def test_l5_after_the_grace_they_are_cut(self) -> None:
        node = Node(grace_s=3)
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as group:
            group.create_task(node.service.serve())
            await asyncio.sleep(1)
            await node.sleeping(600)
            began = loop.time()
            node.service.stop()
        assert loop.time() - began == pytest.approx(3)

    @virtual_time
    async def test_the_second_signal_cuts_at_once(self) -> None:
        node = Node()
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as group:
            group.create_task(node.service.serve())
            await asyncio.sleep(1)
            await node.sleeping(600)
            node.service.stop()
            await asyncio.sleep(2)
            began = loop.time()
            node.service.stop()
        assert loop.time() == pytest.approx(began)
        assert "cutting 1 running turn" in node.said

    @virtual_time
    async def test_l6_usr1_drains_and_comes_back_as_a_new_incarnation(self) -> None:
        node = Node()
        async with asyncio.TaskGroup() as group:
            group.create_task(node.service.serve())
            await asyncio.sleep(1)
            await node.sleeping(4)
            node.service.restart()
            await asyncio.sleep(5)
            assert node.headway.engine.incarnation == 2
            assert await node.headway.send("support", "0.5") == "0.5"
            node.service.stop()
        assert node.said[1] == "restarting in place: waiting for 1 running turn, up to 30s"
        assert node.said[2] == node.said[0]

    @virtual_time
    async def test_a_stop_during_a_restart_still_stops(self) -> None:
        node = Node()
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as group:
            group.create_task(node.service.serve())
            await asyncio.sleep(1)
            await node.sleeping(600)
            node.service.restart()
            await asyncio.sleep(1)
            node.service.stop()
            await asyncio.sleep(1)
            node.service.stop()
        assert loop.time() < 5
        assert node.said[-1].startswith("stopped")

    @virtual_time
    async def test_a_node_that_breaks_ends_the_service_with_its_error(self) -> None:
        node = Node()
        async with asyncio.TaskGroup() as group:
            serving = group.create_task(_caught(node.service))
            await asyncio.sleep(1)
            node.headway.engine._fail(InvariantBroken("made up"))
        assert isinstance(serving.result(), InvariantBroken)

    @virtual_time
    async def test_a_node_that_breaks_while_it_drains_ends_with_its_error_too(self) -> None:
        node = Node()
        async with asyncio.TaskGroup() as group:
            serving = group.create_task(_caught(node.service))
            await asyncio.sleep(1)
            await node.sleeping(600)
            node.service.stop()
            await asyncio.sleep(1)
            node.headway.engine._fail(InvariantBroken("made up"))
        assert isinstance(serving.result(), InvariantBroken)


async def _caught(service: Service) -> Exception | None:
    try:
        await service.serve()
    except InvariantBroken as broken:
        return broken
    return None
