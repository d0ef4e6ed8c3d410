"""L-4: a run never waits for its own parent's slot, whatever the lanes; no slot crosses lanes."""

import asyncio

import pytest

from headway import (
    Headway,
    LaneCleared,
    LaneSettings,
    RunCancelled,
    RunFailed,
    State,
    Turn,
    WouldDeadlock,
)
from headway.testing import virtual_time
from tests.unit.runtime.worlds import Gate, Recorder, ending, moment, now_s


class Tree:
    """Agents that start sub-runs, and a count of those that do work of their own at one time."""

    def __init__(self, lanes: dict[str, int]) -> None:
        self.hw = Headway(lanes=lanes)
        self.leaf = Recorder(takes=1)
        self.hw.agent("leaf")(self.leaf)
        self.hw.agent("chain")(self.chain)
        self.hw.agent("fan")(self.fan)

    async def chain(self, turn: Turn) -> str:
        """Text `n lane lane …`: go n deep, through these lanes in turn."""
        depth, *lanes = turn.text.split()
        if depth == "0":
            await asyncio.sleep(1)
            return "bottom"
        below = f"{int(depth) - 1} {' '.join([*lanes[1:], lanes[0]])}"
        return f"{await turn.delegate('chain', below, lane=lanes[0])}<{depth}"

    async def fan(self, turn: Turn) -> str:
        """Text `n lane`: n children at once."""
        count, lane = turn.text.split()
        replies = await asyncio.gather(
            *(turn.delegate("leaf", str(n), lane=lane) for n in range(int(count)))
        )
        return " ".join(replies)


@virtual_time
async def test_l4_a_sub_run_in_a_lane_of_width_1_runs_on_its_parents_slot() -> None:
    tree = Tree({"main": 1})
    async with tree.hw as hw:
        assert await hw.send("chain", "1 main") == "bottom<1"
        assert now_s() == pytest.approx(1)


@virtual_time
async def test_l4_at_depth_5_in_a_lane_of_width_1() -> None:
    tree = Tree({"main": 1})
    async with tree.hw as hw:
        assert await hw.send("chain", "5 main") == "bottom<1<2<3<4<5"
        assert now_s() == pytest.approx(1)
        assert hw.lanes()["main"].running == 0


@virtual_time
async def test_l4_through_two_lanes_and_back() -> None:
    tree = Tree({"main": 1, "side": 1})
    async with tree.hw as hw:
        assert await hw.send("chain", "5 side main") == "bottom<1<2<3<4<5"
        assert now_s() == pytest.approx(1)


@virtual_time
async def test_l4_several_children_at_once_take_turns_on_the_one_slot() -> None:
    tree = Tree({"main": 1})
    async with tree.hw as hw:
        assert await hw.send("fan", "4 main") == "re: 0 re: 1 re: 2 re: 3"
        assert tree.leaf.most == 1, "a parent lends its slot to one child at a time"
        assert tree.leaf.started == ["0", "1", "2", "3"]
        assert now_s() == pytest.approx(4)


@virtual_time
async def test_l4_many_parents_with_many_children_all_finish_within_the_width() -> None:
    tree = Tree({"main": 2})
    async with tree.hw as hw:
        replies = await asyncio.gather(*(hw.send("fan", "3 main") for _ in range(5)))
        assert replies == ["re: 0 re: 1 re: 2"] * 5
        assert tree.leaf.most == 2


@virtual_time
async def test_l4_a_sub_run_of_a_lane_of_its_own_takes_a_slot_there() -> None:
    tree = Tree({"main": 1, "side": 3})
    async with tree.hw as hw:
        await hw.send("fan", "3 side")
        assert tree.leaf.most == 3


@virtual_time
async def test_l4_no_slot_crosses_lanes() -> None:
    """The parent's slot of `main` does not help a child whose own lane is full."""
    tree = Tree({"main": 1, "side": 1})
    gate = Gate()
    tree.hw.agent("gate")(gate)
    async with tree.hw as hw:
        await hw.submit("gate", "holds side", lane="side")
        parent = await hw.submit("fan", "1 side")
        await asyncio.sleep(100)
        assert tree.leaf.started == []
        assert hw.lanes()["side"].running == 1
        gate.open()
        assert (await parent.wait()).ok


@virtual_time
async def test_l4_sub_runs_of_background_work_leave_the_reserved_slot_free() -> None:
    """Also X-5: they take turns on their parent's slot, and a user's turn starts at once."""
    tree = Tree({})

    @tree.hw.agent("background")
    async def background(turn: Turn) -> str:
        work = (turn.delegate("leaf", str(n), lane="main", priority=10) for n in range(3))
        return " ".join(await asyncio.gather(*work))

    async with tree.hw as hw:
        hw.set_lane("main", LaneSettings(2, reserve=1))
        parent = await hw.submit("background", priority=10)
        await asyncio.sleep(0.5)
        await hw.send("leaf", "user")
        await parent.wait()
        assert tree.leaf.started == ["0", "user", "1", "2"]
        assert tree.leaf.started_at == pytest.approx([0, 0.5, 1, 2])


@virtual_time
async def test_l4_a_parent_that_stops_waiting_works_on_but_nothing_else_starts() -> None:
    tree = Tree({"main": 1})
    gave_up_at: list[float] = []

    @tree.hw.agent("hasty")
    async def hasty(turn: Turn) -> str:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(turn.delegate("leaf", "slow", lane="main"), 1)
        gave_up_at.append(now_s())
        await asyncio.sleep(1)
        return "done without it"

    async with tree.hw as hw:
        tree.leaf.spans = {"slow": 10}
        parent = await hw.submit("hasty")
        other = await hw.submit("leaf", "other")
        assert await parent.reply() == "done without it"
        assert gave_up_at == pytest.approx([1])
        assert now_s() == pytest.approx(2)
        await other.wait()
        assert tree.leaf.started == ["slow", "other"]
        assert tree.leaf.started_at == pytest.approx([0, 10]), (
            "slow holds the one slot until it ends"
        )


@virtual_time
async def test_l4_a_parent_that_stops_waiting_can_lend_its_slot_again() -> None:
    tree = Tree({"main": 1})

    @tree.hw.agent("hasty")
    async def hasty(turn: Turn) -> str:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(turn.delegate("leaf", "slow", lane="main"), 1)
        return await turn.delegate("leaf", "quick", lane="main")

    async with tree.hw as hw:
        tree.leaf.spans = {"slow": 10}
        assert await hw.send("hasty") == "re: quick"
        assert now_s() == pytest.approx(2), "not behind the child that it no longer waits for"


@virtual_time
async def test_l4_a_child_that_nobody_waits_for_takes_its_turn_in_the_lane() -> None:
    tree = Tree({"main": 1})

    @tree.hw.agent("starter")
    async def starter(turn: Turn) -> str:
        child = await turn.submit("leaf", "later", lane="main")
        await asyncio.sleep(5)
        return child.id

    async with tree.hw as hw:
        child_id = await hw.send("starter")
        assert tree.leaf.started == []
        await moment()
        assert (await hw.run(child_id)).state is State.RUNNING


@virtual_time
async def test_l4_a_cancelled_parent_takes_its_waiting_and_running_children_along() -> None:
    tree = Tree({"main": 1})
    async with tree.hw as hw:
        parent = await hw.submit("fan", "3 main")
        await asyncio.sleep(0.5)
        stopped = await parent.cancel()
        assert (stopped.running, stopped.waiting) == (2, 2)
        assert ending(await parent.wait()) == "cancelled/stopped"
        assert tree.leaf.cancelled == ["0"]
        await moment()
        assert hw.sessions() == {}
        assert hw.lanes()["main"].running == 0
        assert await hw.send("leaf", "free again") == "re: free again"


@virtual_time
async def test_l4_a_failed_child_is_told_to_its_parent_and_the_slot_comes_back() -> None:
    tree = Tree({"main": 1})

    @tree.hw.agent("parent")
    async def parent(turn: Turn) -> str:
        child = await turn.submit("leaf", "x", lane="main", timeout="500ms")
        outcome = await child.wait()
        return f"{ending(outcome)}, then {await turn.delegate('leaf', 'y', lane='main')}"

    async with tree.hw as hw:
        assert await hw.send("parent") == "failed/timed_out, then re: y"


@virtual_time
async def test_l4_a_sub_run_that_is_refused_at_once_says_why() -> None:
    tree = Tree({})

    @tree.hw.agent("parent")
    async def parent(turn: Turn) -> str:
        with pytest.raises(RunFailed, match="deadline_queued"):
            await turn.submit("leaf", "too late", deadline=0)
        return "told"

    async with tree.hw as hw:
        assert await hw.send("parent") == "told"


@virtual_time
async def test_l4_a_child_whose_lane_is_cleared_frees_its_parent() -> None:
    tree = Tree({"main": 1, "side": 0})

    @tree.hw.agent("parent")
    async def parent(turn: Turn) -> str:
        with pytest.raises(LaneCleared):
            await turn.delegate("leaf", "x", lane="side")
        return "told"

    async with tree.hw as hw:
        handle = await hw.submit("parent")
        await asyncio.sleep(1)
        hw.clear_lane("side")
        assert await handle.reply() == "told"


@virtual_time
async def test_l4_a_cancelled_child_is_told_to_its_parent() -> None:
    tree = Tree({"main": 1})
    told: list[str] = []

    @tree.hw.agent("parent")
    async def parent(turn: Turn) -> str:
        child = await turn.submit("leaf", "x", lane="main", session="child")
        with pytest.raises(RunCancelled):
            await child.reply()
        told.append(child.id)
        return "told"

    async with tree.hw as hw:
        handle = await hw.submit("parent")
        await asyncio.sleep(0.5)
        await hw.stop("child")
        assert await handle.reply() == "told"


@virtual_time
async def test_l4_waiting_for_a_run_of_ones_own_session_would_deadlock_and_says_so() -> None:
    tree = Tree({"main": 5})
    refused: list[WouldDeadlock] = []

    @tree.hw.agent("parent")
    async def parent(turn: Turn) -> str:
        child = await turn.submit("leaf", "mine", session=turn.session)
        with pytest.raises(WouldDeadlock, match="'s'") as refusal:
            await child.reply()
        refused.append(refusal.value)
        return child.id

    async with tree.hw as hw:
        child_id = await hw.send("parent", session="s")
        assert refused[0].run_id == child_id
        await asyncio.sleep(1.5)
        assert (await hw.run(child_id)).state is State.DONE, "not waited for, it runs afterwards"


@virtual_time
async def test_l4_waiting_for_the_session_of_a_grandparent_would_deadlock_too() -> None:
    tree = Tree({"main": 5})

    @tree.hw.agent("parent")
    async def parent(turn: Turn) -> str:
        return await turn.delegate("child", turn.session)

    @tree.hw.agent("child")
    async def child(turn: Turn) -> str:
        with pytest.raises(WouldDeadlock):
            await turn.delegate("leaf", "up", session=turn.text)
        return "refused"

    async with tree.hw as hw:
        assert await hw.send("parent", session="top") == "refused"


@virtual_time
async def test_l4_a_sub_run_in_a_wide_session_of_its_own_parent_is_no_deadlock() -> None:
    """The session allows three at once; only the lane is full: there the parent's slot helps."""
    tree = Tree({"main": 1})

    @tree.hw.agent("parent")
    async def parent(turn: Turn) -> str:
        return await turn.delegate(
            "leaf", "mate", session=turn.session, lane="main", max_concurrent=3
        )

    async with tree.hw as hw:
        assert await hw.send("parent", session="group", max_concurrent=3) == "re: mate"


@virtual_time
async def test_l4_two_waits_for_one_child_and_one_of_them_gives_up() -> None:
    tree = Tree({"main": 1})

    @tree.hw.agent("parent")
    async def parent(turn: Turn) -> str:
        child = await turn.submit("leaf", "x", lane="main")
        hasty = asyncio.wait_for(child.reply(), 0.5)
        first, second = await asyncio.gather(hasty, child.reply(), return_exceptions=True)
        assert isinstance(first, TimeoutError)
        return f"{second} and {await turn.delegate('leaf', 'y', lane='main')}"

    async with tree.hw as hw:
        assert await hw.send("parent") == "re: x and re: y"
        assert tree.leaf.most == 1


@virtual_time
async def test_l4_waiting_for_a_sub_run_that_repeats_an_earlier_one_does_not_deadlock() -> None:
    """The same idempotency key as a run of another turn: this turn waits for it all the same."""
    tree = Tree({"main": 1})

    @tree.hw.agent("starts")
    async def starts(turn: Turn) -> str:
        await turn.submit("leaf", "shared", lane="main", idempotency_key="k")
        return "started"

    @tree.hw.agent("waits")
    async def waits(turn: Turn) -> str:
        assert "shared" not in tree.leaf.started, "it still waits for this very slot"
        return await turn.delegate("leaf", "shared", lane="main", idempotency_key="k")

    async with tree.hw as hw:
        await hw.send("leaf", "served before, so the others go first")
        first = await hw.submit("starts")
        second = await hw.submit("waits")
        await first.wait()
        async with asyncio.timeout(60):
            assert await second.reply() == "re: shared"
        assert tree.leaf.started.count("shared") == 1


@virtual_time
async def test_l4_sub_runs_use_the_lane_subagent_unless_they_say_otherwise() -> None:
    tree = Tree({})
    gate = Gate()
    tree.hw.agent("gate")(gate)

    @tree.hw.agent("parent")
    async def parent(turn: Turn) -> str:
        return await turn.delegate("gate", "x")

    async with tree.hw as hw:
        handle = await hw.submit("parent")
        await moment()
        assert {name: view.running for name, view in hw.lanes().items() if view.running} == {
            "main": 1,
            "subagent": 1,
        }
        gate.open()
        await handle.wait()
