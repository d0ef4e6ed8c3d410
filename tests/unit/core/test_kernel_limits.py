"""Limits for tasks (F-1) and what a refused one costs (F-6)."""

from collections.abc import Callable

import pytest

from headway import Headway
from headway.core.actions import Finish
from headway.model.settings import AgentSettings, Limits
from headway.model.time import MINUTE, SECOND
from headway.model.words import Reason, Rule, State
from headway.testing import virtual_time
from tests.unit.core.by_hand import ByHand

FULL = (State.REJECTED, Reason.QUEUE_FULL)


def tasks(hand: ByHand, agent: str, count: int, **options: object) -> list[str]:
    """So many tasks of an agent; answers the names of those that were refused."""
    first = len(hand.actions)
    names = [f"{agent}{first}-{number}" for number in range(count)]
    return [name for name in names if hand.submit(name, agent, source="task", **options)]


def test_f1_one_agent_has_at_most_ten_tasks_in_flight() -> None:
    hand = ByHand()
    assert tasks(hand, "a", 15) == []
    assert len(hand.running) == 10


def test_f1_the_node_has_at_most_twenty_tasks_in_flight() -> None:
    hand = ByHand()
    for agent in "abc":
        tasks(hand, agent, 15)
    assert len(hand.running) == 20


def test_f1_one_agents_hundred_and_first_waiting_task_is_refused_running_ones_not_counted() -> None:
    hand = ByHand()
    assert tasks(hand, "a", 110) == []
    assert len(hand.running) == 10
    (refused,) = tasks(hand, "a", 1)
    assert hand.ending(refused) == FULL
    assert tasks(hand, "b", 1) == []


def test_f1_the_thousand_and_first_waiting_task_is_refused_whoever_asks() -> None:
    """Reached with the defaults: 20 run, ten agents have 100 waiting each."""
    hand = ByHand()
    for agent in "ab":
        assert tasks(hand, agent, 110) == []
    for agent in "cdefghij":
        assert tasks(hand, agent, 100) == []
    assert len(hand.running) == 20
    (refused,) = tasks(hand, "k", 1)
    assert hand.ending(refused) == FULL
    hand.end_oldest()
    assert tasks(hand, "k", 1) == []


def test_f1_other_sources_are_not_bounded_by_the_limits_for_tasks() -> None:
    hand = ByHand(limits=Limits(0, 0, 0, 0))
    for number in range(40):
        assert hand.submit(f"m{number}") is None
        assert hand.submit(f"f{number}", source="firing") is None
    assert len([name for name in hand.running if name[0] == "m"]) == 30
    assert len([name for name in hand.running if name[0] == "f"]) == 30
    assert tasks(hand, "a", 1) != []


@pytest.mark.parametrize(
    ("limit", "starts"),
    [("max_inflight", 3), ("max_inflight_per_agent", 2)],
)
def test_f1_raising_one_limit_starts_at_once_what_now_may(limit: str, starts: int) -> None:
    """Two agents with five waiting tasks each, both limits at one less than they could use."""
    tight = {"max_inflight": 2, "max_inflight_per_agent": 10}
    if limit == "max_inflight_per_agent":
        tight = {"max_inflight": 20, "max_inflight_per_agent": 1}
    hand = ByHand(limits=Limits(**tight))
    tasks(hand, "a", 5)
    tasks(hand, "b", 5)
    before = len(hand.running)
    assert before == 2
    hand.set_limits(**{limit: tight[limit] + starts if limit == "max_inflight" else 2})
    assert len(hand.running) == before + starts


def test_f1_lowering_a_limit_stops_nothing_and_starts_nothing_until_there_is_room() -> None:
    hand = ByHand()
    tasks(hand, "a", 12)
    hand.set_limits(max_inflight=8)
    assert len(hand.running) == 10
    assert hand.cuts == []
    hand.end_oldest(2)
    assert len(hand.running) == 8
    hand.end_oldest()
    assert len(hand.running) == 8


def test_f1_admission_limits_can_be_changed_live_and_apart() -> None:
    hand = ByHand(limits=Limits(max_queue=2, max_queue_per_agent=1, max_inflight=0))
    assert len(tasks(hand, "a", 2)) == 1
    hand.set_limits(max_queue_per_agent=2)
    assert len(tasks(hand, "a", 2)) == 1
    assert len(tasks(hand, "b", 1)) == 1
    hand.set_limits(max_queue=3)
    assert len(tasks(hand, "b", 1)) == 0
    assert hand.running == []


@pytest.mark.parametrize("limit", Limits.__struct_fields__)
@virtual_time
async def test_f1_a_reload_of_one_limit_leaves_the_others_alone(limit: str) -> None:
    headway = Headway()
    async with headway:
        headway.set_limits(max_queue=11, max_queue_per_agent=12)
        headway.set_limits(max_inflight=13, max_inflight_per_agent=14)
        headway.set_limits(**{limit: 99})
        now = headway.engine.kernel.stage.floor.limits
        said = dict(zip(Limits.__struct_fields__, (11, 12, 13, 14), strict=True)) | {limit: 99}
        assert now == Limits(**said)


def test_f1_an_agents_own_quota_comes_before_the_general_one_and_is_live() -> None:
    hand = ByHand(agents={"a": AgentSettings(max_inflight=1)})
    tasks(hand, "a", 5)
    tasks(hand, "b", 5)
    assert sum(name[0] == "a" for name in hand.running) == 1
    assert sum(name[0] == "b" for name in hand.running) == 5
    hand.set_agent("a", AgentSettings(max_inflight=3))
    assert sum(name[0] == "a" for name in hand.running) == 3


WAYS_OUT: dict[str, Callable[[ByHand], object]] = {
    "started": lambda hand: hand.end("busy"),
    "cancelled": lambda hand: hand.cancel("w"),
    "past its deadline": lambda hand: hand.wait(MINUTE),
    "lane cleared": lambda hand: hand.clear_lane("main"),
    "session stopped": lambda hand: hand.stop_all("s"),
}


@pytest.mark.parametrize("way", WAYS_OUT)
@pytest.mark.parametrize("due", [None, "1ms"], ids=["now", "later"])
def test_f1_a_place_in_the_queue_is_given_back_however_a_waiting_task_leaves_it(
    way: str, due: str | None
) -> None:
    hand = ByHand(limits=Limits(max_queue_per_agent=1, max_inflight=1))
    hand.submit("busy", "b", source="task", deadline="1h")
    assert hand.submit("w", source="task", session="s", due=due) is None
    hand.wait(SECOND)
    assert hand.submit("too much", source="task") is not None
    WAYS_OUT[way](hand)
    assert hand.submit("next", source="task") is None
    assert hand.submit("too much again", source="task") is not None


def test_f1_a_task_that_is_not_due_yet_takes_its_place_in_the_queue_at_once() -> None:
    hand = ByHand(limits=Limits(max_queue_per_agent=1))
    assert hand.submit("later", source="task", due="1h") is None
    assert hand.submit("too much", source="task") is not None
    hand.cancel("later")
    assert hand.submit("next", source="task") is None


def test_f1_r5_a_task_that_waits_for_its_retry_counts_as_waiting_not_as_in_flight() -> None:
    hand = ByHand(limits=Limits(max_inflight=1, max_queue_per_agent=1))
    hand.submit("x", source="task", retries=1)
    hand.fail("x")
    assert hand.submit("y", source="task") is not None
    assert hand.submit("z", "b", source="task") is None
    assert hand.running == ["z"]
    assert hand.why("x").rule is Rule.RETRY
    hand.wait(3 * SECOND)
    assert hand.why("x").rule is Rule.INFLIGHT_LIMIT
    hand.end("z")
    assert hand.running == ["x"]


def test_f6_a_refused_task_has_its_one_outcome_and_leaves_nothing_behind() -> None:
    hand = ByHand(limits=Limits(max_queue=0))
    stage = hand.kernel.stage
    hand.submit("first", source="task")
    sizes = [len(stage.runs), len(stage.sessions), len(stage.alarms), len(stage.floor.agents)]
    for number in range(5_000):
        refused = hand.submit(f"r{number}", source="task", session=f"s{number}")
        assert refused is not None
    assert sizes == [
        len(stage.runs),
        len(stage.sessions),
        len(stage.alarms),
        len(stage.floor.agents),
    ]
    finishes = [action for action in hand.actions if isinstance(action, Finish)]
    assert len(finishes) == 5_001
    assert {(a.outcome.state, a.outcome.reason, a.attempt) for a in finishes} == {(*FULL, 0)}
