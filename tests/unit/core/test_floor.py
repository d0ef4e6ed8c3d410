"""The floor: lanes, agents and slots, apart from any session (L-1, F-2, X-6)."""

import pytest

from headway.core.lanes import Purse
from headway.model.settings import AgentSettings, Budget, LaneSettings
from headway.model.time import MINUTE, SECOND
from tests.unit.core.by_hand import NOON, ByHand


def test_x6_a_purse_without_a_budget_is_always_open() -> None:
    purse = Purse(Budget(), NOON)
    for _ in range(1000):
        purse.run_started(NOON)
        purse.tokens_used(10**9, NOON)
    assert purse.free_at(NOON) <= NOON


def test_x6_a_purse_is_free_when_both_of_its_buckets_are() -> None:
    purse = Purse(Budget(runs_per_minute=1, tokens_per_minute=60), NOON)
    purse.run_started(NOON)
    purse.tokens_used(60 + 120, NOON)
    assert purse.free_at(NOON) == NOON + 121 * SECOND
    assert purse.free_at(NOON + 100 * SECOND) == NOON + 121 * SECOND
    assert purse.free_at(NOON + 121 * SECOND) == NOON + 121 * SECOND


def test_f2_the_heaps_do_not_grow_with_the_number_of_starts() -> None:
    """Outdated entries are swept: ten thousand starts leave as little as ten."""
    hand = ByHand(lanes={"main": 2})
    floor = hand.kernel.stage.floor
    (main,) = [lane for lane in floor.lanes.values() if lane.name == "main"]
    for number in range(40):
        hand.submit(f"seed{number}", "abcd"[number % 4])
    for number in range(3_000):
        hand.end_oldest()
        hand.submit(f"r{number}", "abcd"[number % 4])
    assert sum(len(heap) for heap in main.heaps) < 200
    assert sum(len(flow.heads) for flows in main.flows for flow in flows.values()) < 200


def test_f2_withdrawn_runs_do_not_pile_up() -> None:
    hand = ByHand(lanes={"main": 0})
    (main,) = [lane for lane in hand.kernel.stage.floor.lanes.values() if lane.name == "main"]
    for number in range(2_000):
        hand.submit(f"r{number}")
        hand.cancel(f"r{number}")
    assert sum(len(flow.heads) for flows in main.flows for flow in flows.values()) < 100
    hand.submit("x")
    hand.set_lane("main", 1)
    assert hand.running == ["x"]


def test_f2_a_collected_run_may_meet_an_outdated_entry_of_its_first_part() -> None:
    """It has that one's rank and order: the two must not be compared as runs."""
    hand = ByHand(lanes={"main": 1})
    hand.submit("busy")
    for name in ("x", "y"):
        hand.submit(name, session="s", mode="collect", retries=1)
    hand.drain(keep_waiting=True)
    hand.reset()
    hand.end("busy")
    (whole,) = hand.running
    hand.fail(whole)
    hand.wait(3 * SECOND)
    assert hand.running == [whole]
    hand.end(whole)
    hand.submit("next")
    assert hand.running == ["next"]


@pytest.mark.parametrize("weight", [1, 2, 7, 13, 17, 1000])
def test_x8_any_weight_is_whole_enough_to_go_on_for_ever(weight: int) -> None:
    """With a light neighbour that always waits, a heavy agent gets its share and no less."""
    hand = ByHand(lanes={"main": 1}, agents={"a": AgentSettings(weight=weight)})
    rounds = 3
    for number in range(rounds * weight + 10):
        hand.submit(f"a{number}", "a")
    for number in range(rounds + 2):
        hand.submit(f"b{number}", "b")
    hand.end_oldest(rounds * (weight + 1))
    served = [name[0] for name in hand.started[: rounds * (weight + 1)]]
    assert abs(served.count("b") - rounds) <= 1


def test_x6_moving_an_agent_to_another_provider_frees_it() -> None:
    hand = ByHand(agents={"a": AgentSettings(provider="held"), "b": AgentSettings(provider="held")})
    hand.submit("x", "a")
    hand.limit("x", MINUTE)
    hand.submit("a1", "a")
    hand.submit("b1", "b")
    hand.set_agent("a", AgentSettings(provider="other"))
    assert hand.running == ["a1"]
    hand.set_agent("a", AgentSettings(provider="held"))
    hand.submit("a2", "a")
    assert hand.running == ["a1"], "the pause of the old key still holds who comes back to it"


def test_l1_every_agent_setting_of_the_settings_counts_from_the_first_run() -> None:
    hand = ByHand(agents={"a": AgentSettings(max_inflight=1)})
    for number in range(3):
        hand.submit(f"r{number}", source="task")
    assert hand.running == ["r0"]


def test_l2_a_lane_keeps_its_runs_through_any_change_of_settings() -> None:
    hand = ByHand(lanes={"main": 3})
    for number in range(5):
        hand.submit(f"r{number}")
    hand.set_lane("main", LaneSettings(3, reserve=2, budget=Budget(runs_per_minute=60)))
    assert hand.running == ["r0", "r1", "r2"]
    hand.end("r0")
    assert hand.running == ["r1", "r2", "r3"]
