"""The order in which a service and what stands in front of it open and close, in virtual time (L-5, O-1)."""

import asyncio

import pytest

from headway import Headway, NotRunning, Turn, Unavailable
from headway.cli.worker.service import Service
from headway.model.time import SECOND, Span
from headway.testing import virtual_time


class Front:
    """A front that notes what the node was at when it was asked."""

    closing: Span = 2 * SECOND

    def __init__(self, headway: Headway) -> None:
        self._headway = headway
        self._gone = asyncio.Event()
        self.noted: list[str] = []
        self.closing_takes_s = 0.0
        self.breaks_closing = False

    async def open(self) -> None:
        self.noted.append(f"open, {self._what()}")

    async def ended(self) -> None:
        await self._gone.wait()
        raise OSError("made up")

    async def close(self) -> None:
        self.noted.append(f"close, {self._what()}")
        await asyncio.sleep(self.closing_takes_s)
        if self.breaks_closing:
            raise OSError("made up")

    async def reload(self) -> None:
        self.noted.append("reload")

    def introduction(self) -> str:
        return "here"

    def break_down(self) -> None:
        self._gone.set()

    def _what(self) -> str:
        return "draining" if self._headway.draining else "running"


class Node:
    def __init__(self, grace_s: int = 30) -> None:
        self.headway = Headway(name="desk")
        self.headway.agent("support")(_support)
        self.front = Front(self.headway)
        self.said: list[str] = []
        self.service = Service(self.headway, grace_s * SECOND, self.said.append, self.front)


async def _support(turn: Turn) -> str:
    await asyncio.sleep(float(turn.text))
    return turn.text


@virtual_time
async def test_it_opens_on_a_running_node_and_closes_on_a_drained_one() -> None:
    node = Node()
    async with asyncio.TaskGroup() as group:
        group.create_task(node.service.serve())
        await asyncio.sleep(1)
        assert node.said == ["here"]
        await node.headway.submit("support", "7")
        await asyncio.sleep(0.1)
        node.service.stop()
        await asyncio.sleep(3)
        assert node.headway.draining, "red at once"
        assert node.front.noted == ["open, running"], "and still there, to tell callers"
        with pytest.raises(Unavailable):
            await node.headway.submit("support", "1")
    assert node.front.noted == ["open, running", "close, draining"]
    assert node.said[-1] == "stopped; nothing is kept, as its store was memory"


@virtual_time
async def test_l5_the_grace_is_for_the_turns_and_for_the_front_together() -> None:
    node = Node(grace_s=30)
    node.front.closing_takes_s = 2
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as group:
        group.create_task(node.service.serve())
        await asyncio.sleep(1)
        await node.headway.submit("support", "600")
        await asyncio.sleep(0.1)
        began = loop.time()
        node.service.stop()
    assert loop.time() - began == pytest.approx(30)


@virtual_time
async def test_a_wish_to_reload_is_passed_on_each_time() -> None:
    node = Node()
    async with asyncio.TaskGroup() as group:
        group.create_task(node.service.serve())
        await asyncio.sleep(1)
        for _ in range(2):
            node.service.reload()
            await asyncio.sleep(1)
        node.service.stop()
        node.service.reload()
    assert node.front.noted == ["open, running", "reload", "reload", "close, draining"]


@virtual_time
async def test_a_front_that_breaks_ends_the_service_with_its_error() -> None:
    node = Node()

    async def serve() -> str:
        try:
            await node.service.serve()
        except OSError as error:
            return str(error)
        return ""

    async with asyncio.TaskGroup() as group:
        serving = group.create_task(serve())
        await asyncio.sleep(1)
        node.front.break_down()
    assert serving.result() == "made up"
    assert node.front.noted[-1].startswith("close")


@virtual_time
async def test_d7_a_front_that_cannot_close_does_not_keep_the_node_from_leaving() -> None:
    node = Node()
    node.front.breaks_closing = True

    async def serve() -> None:
        with pytest.raises(OSError, match="made up"):
            await node.service.serve()

    async with asyncio.TaskGroup() as group:
        group.create_task(serve())
        await asyncio.sleep(1)
        node.service.stop()
    with pytest.raises(NotRunning):
        node.headway.stats()
