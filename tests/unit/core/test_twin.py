"""The copy of a kernel that a forecast plays with shares nothing with it that ever changes (X-1, T-5)."""

import gc
from collections.abc import Callable, Iterator
from enum import Enum

import pytest

from headway.core.alarms import Alarm
from headway.core.forecast import Foreseen
from headway.core.kernel import Kernel
from headway.core.moving import Moving
from headway.core.session import QueueRules
from headway.core.twin import twin_of
from headway.model.run import Route, Sender
from headway.model.settings import AgentSettings, Budget, LaneSettings
from headway.model.time import SECOND
from headway.model.value import Value
from tests.unit.core.by_hand import ByHand
from tests.unit.core.test_forecast import SCENES

_UNCHANGING = (int, float, str, bytes, type(None), Value, Enum, QueueRules, Foreseen, type)


def everything() -> ByHand:
    """One of each: windows, holds, offers, budgets, sub-runs, cuts, heartbeats."""
    hand = ByHand(
        lanes={"main": LaneSettings(4, reserve=1, budget=Budget(runs_per_minute=100))},
        agents={
            "a": AgentSettings(steerable=True, provider="key"),
            "b": AgentSettings(budget=Budget(runs_per_minute=1)),
        },
    )
    hand.submit("turn", session="s")
    hand.submit("steered", session="s", mode="steer")
    hand.submit("offered", session="s", mode="steer")
    hand.takes("turn", "steered")
    hand.submit("buffered", route=Route("web"), sender=Sender("ann"))
    hand.submit("later", due="1h", deadline="2h")
    hand.submit("retried", retries=2)
    hand.fail("retried")
    hand.submit("child", parent="turn", lane="main")
    hand.awaits("turn", "child")
    hand.submit("b1", "b")
    hand.submit("b2", "b", priority=10, preemptible=True)
    hand.submit("beat", session="s", source="heartbeat", lane="main")
    hand.submit("collected", session="c")
    hand.submit("c2", session="c", mode="collect", debounce="5s")
    hand.submit("limited")
    hand.submit("stopped", session="z", timeout="1m")
    hand.cancel("stopped")
    hand.wait(SECOND)
    return hand


def parts(thing: object) -> Iterator[object]:
    """What hangs directly on it and may change."""
    if isinstance(thing, Moving):
        yield from (getattr(thing, name) for name in thing.__struct_fields__)
    elif isinstance(thing, dict):
        yield from thing.keys()
        yield from thing.values()
    elif isinstance(thing, list | tuple | set | frozenset):
        yield from thing
    else:
        slots = [name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())]
        yield from (getattr(thing, name) for name in slots if hasattr(thing, name))
        yield from vars(thing).values() if hasattr(thing, "__dict__") else ()


def moving(kernel: Kernel) -> dict[int, object]:
    """All that a kernel consists of and that can change, by identity."""
    found: dict[int, object] = {}
    look = [kernel]
    todo: list[object] = list(look)
    while todo:
        thing = todo.pop()
        if isinstance(thing, _UNCHANGING) or id(thing) in found or callable(thing):
            continue
        found[id(thing)] = thing
        todo += parts(thing)
    return {key: thing for key, thing in found.items() if not isinstance(thing, tuple | frozenset)}


@pytest.mark.parametrize("scene", [everything, *SCENES])
def test_x1_nothing_that_changes_is_shared(scene: Callable[[], ByHand]) -> None:
    kernel = scene().kernel
    twin = twin_of(kernel)
    originals, copies = moving(kernel), moving(twin)
    shared = [
        thing for key, thing in originals.items() if key in copies and not _is_settings(thing)
    ]
    assert shared == []
    assert len(originals) > 50


def _is_settings(thing: object) -> bool:
    """The mappings of the settings are read-only."""
    return type(thing).__name__ == "mappingproxy" or (
        isinstance(thing, dict)
        and all(isinstance(value, Value) for value in thing.values())
        and bool(thing)
    )


def deadlines_off(kernel: Kernel) -> None:
    for live in kernel.stage.runs.values():
        if live.deadline_alarm is not None:
            kernel.stage.alarms.cancel(live.deadline_alarm)
            live.deadline_alarm = None


@pytest.mark.parametrize("scene", [everything, *SCENES])
def test_x1_the_copy_decides_as_the_original_would(scene: Callable[[], ByHand]) -> None:
    hand = scene()
    twin = ByHand(hand.settings)
    twin.kernel = twin_of(hand.kernel)
    deadlines_off(hand.kernel)
    twin.now, twin.runs, twin.tickets = hand.now, dict(hand.runs), dict(hand.tickets)
    hand.actions.clear()
    for each in (hand, twin):
        for _ in range(200):
            alarm_at = each.kernel.wake_at
            if each.tickets:
                each.wait(SECOND)
                if each.tickets:
                    each.end_oldest()
            elif alarm_at is not None:
                each.wait(alarm_at - each.now)
    assert hand.actions == twin.actions
    assert hand.actions
    assert not hand.kernel.stage.runs


def test_x1_a_copy_that_is_dropped_leaves_nothing_behind() -> None:
    hand = everything()
    twin_of(hand.kernel)
    gc.collect()
    before = sum(isinstance(thing, Alarm) for thing in gc.get_objects())
    for _ in range(5):
        twin_of(hand.kernel)
    gc.collect()
    # What earlier tests have left may go meanwhile.
    assert sum(isinstance(thing, Alarm) for thing in gc.get_objects()) <= before
