"""What nests deeper than every reader can take is refused where it comes in (T-2, D-1)."""

import pytest

from headway import RunFailed, Turn
from headway.core.nesting import MAX_LEVELS, nests_too_deep
from headway.model.errors import InvalidInput
from headway.testing import virtual_time
from tests.unit.runtime.worlds import Recorder, with_agents


def nested(levels: int, *, lists: bool = False) -> object:
    value: object = [] if lists else {}
    for _ in range(levels - 1):
        value = [value] if lists else {"x": value}
    return value


@pytest.mark.parametrize("lists", [False, True])
def test_a_hundred_levels_are_fine_and_one_more_is_not(lists: bool) -> None:
    assert not nests_too_deep(nested(MAX_LEVELS, lists=lists))
    assert nests_too_deep(nested(MAX_LEVELS + 1, lists=lists))
    assert nests_too_deep(nested(100_000, lists=lists))


@pytest.mark.parametrize("value", [None, 1, "text", [], {}, [1, {"a": (2, 3)}], [[]] * 1000])
def test_what_is_flat_is_not_deep(value: object) -> None:
    assert not nests_too_deep(value)


def test_what_contains_itself_is_too_deep() -> None:
    value: list[object] = []
    value += [value, value, value]
    assert nests_too_deep(value)


@virtual_time
async def test_t2_a_task_that_nests_too_deep_is_refused_and_a_reply_fails_its_run() -> None:
    hw = with_agents(Recorder(takes=0))

    @hw.agent("deep")
    async def deep(turn: Turn) -> object:
        return nested(900)

    async with hw:
        with pytest.raises(InvalidInput, match=r"task.params: .* at most 100 levels"):
            await hw.submit("a", task={"action": "x", "params": {"x": nested(900)}})
        assert (await hw.runs()).runs == ()
        with pytest.raises(RunFailed, match="at most 100 levels"):
            await hw.send("deep", "x")
