"""Who is next: priority and order within an agent, fairness across agents (F-2, F-3, X-8)."""

import msgspec
import pytest

from headway.model.settings import AgentSettings, LaneSettings, Limits, Settings
from headway.model.time import MINUTE, SECOND
from tests.unit.core.by_hand import ByHand


def order_of(hand: ByHand, lane_width: int = 1) -> list[str]:
    """Let everything that waits in a paused main lane start and end, one after the other."""
    hand.set_lane("main", lane_width)
    while hand.tickets:
        hand.end_oldest()
    return hand.started


def test_f2_lower_priority_number_first_then_submission_order() -> None:
    hand = ByHand(lanes={"main": 0})
    for name, priority in (("c", 5), ("a", -1), ("d", 5), ("b", 0), ("e", 6)):
        hand.submit(name, priority=priority)
    assert order_of(hand) == ["a", "b", "c", "d", "e"]


def test_f2_submission_order_is_a_sequence_not_the_clock() -> None:
    """Fifty in one instant, and then more although the clock steps back."""
    hand = ByHand(lanes={"main": 0})
    names = [f"r{number}" for number in range(50)]
    for name in names:
        hand.submit(name)
    hand.now -= MINUTE
    hand.submit("late")
    hand.submit("later")
    hand.now += 2 * MINUTE
    assert order_of(hand) == [*names, "late", "later"]


def test_s1_f2_inside_a_session_submission_order_holds_whatever_the_priority() -> None:
    hand = ByHand(lanes={"main": 0})
    for name, priority in (("one", 9), ("two", 0), ("three", -5)):
        hand.submit(name, session="s", source="task", priority=priority)
    hand.submit("other", session="t", source="task", priority=1)
    assert order_of(hand) == ["other", "one", "two", "three"]


@pytest.mark.parametrize("width", [1, 2, 3, 7])
def test_f2_with_a_full_queue_of_a_each_task_of_b_starts_after_at_most_one_of_a(width: int) -> None:
    hand = ByHand(lanes={"main": width})
    for number in range(100):
        hand.submit(f"a{number}", "a", source="task", deadline="1h")
    for number in range(50):
        mine = f"b{number}"
        already = len(hand.started)
        hand.submit(mine, "b", source="task")
        while mine not in hand.started:
            hand.end_oldest()
        assert len(hand.started) - already <= 2
        hand.end(mine)
        if hand.submit(f"a+{number}", "a", source="task", deadline="1h"):
            hand.end_oldest()


def test_f2_also_when_all_fifty_come_in_one_tick() -> None:
    hand = ByHand(lanes={"main": 1})
    for number in range(49):
        hand.submit(f"a{number}", "a", source="task")
    hand.submit("b", "b", source="task")
    while hand.tickets:
        hand.end_oldest()
    assert hand.started[:3] == ["a0", "b", "a1"]
    assert len(hand.started) == 50


def test_f2_the_agent_with_fewest_in_flight_is_next() -> None:
    hand = ByHand(lanes={"main": 4})
    for name in ("a0", "a1", "a2", "b0"):
        hand.submit(name, name[0])
    for name in ("a3", "b1", "c0", "b2"):
        hand.submit(name, name[0])
    for name in ("a0", "c0", "b0", "a1"):
        hand.end(name)
    assert hand.started[4:] == ["c0", "b1", "b2", "a3"]


def test_f2_in_flight_counts_over_all_lanes() -> None:
    hand = ByHand(lanes={"main": 0})
    hand.submit("busy", "a", lane="team")
    hand.submit("a0", "a")
    hand.submit("b0", "b")
    hand.set_lane("main", 1)
    assert hand.running == ["busy", "b0"]


def test_f2_among_equals_the_one_served_longest_ago_is_next() -> None:
    hand = ByHand(lanes={"main": 0})
    for number in range(3):
        for agent in "cab":
            hand.submit(f"{agent}{number}", agent)
    assert order_of(hand) == ["c0", "a0", "b0", "c1", "a1", "b1", "c2", "a2", "b2"]


def test_f2_an_agent_that_was_idle_saves_up_nothing() -> None:
    """Otherwise one that slept all night would have the lane to itself in the morning."""
    hand = ByHand(lanes={"main": 1})
    for number in range(20):
        hand.submit(f"a{number}", "a")
        hand.end(f"a{number}")
    hand.set_lane("main", 0)
    for number in range(6):
        hand.submit(f"a+{number}", "a")
        hand.submit(f"b{number}", "b")
    tail = order_of(hand)[20:]
    assert [name[0] for name in tail] == list("ba" * 6)


def test_f2_is_fair_between_lanes_too_when_the_nodes_limit_is_what_binds() -> None:
    hand = ByHand(limits=Limits(max_inflight=1))
    for number in range(5):
        hand.submit(f"a{number}", "a", source="task")
    hand.submit("b0", "b", source="task", lane="team")
    hand.submit("c0", "c", source="task", lane="cron")
    for _ in range(6):
        hand.end_oldest()
    assert hand.started[:3] == ["a0", "b0", "c0"]


def test_f2_background_and_tasks_of_one_agent_are_one_line() -> None:
    """Kinds of runs are kept apart inside; who is next must not show it."""
    hand = ByHand(lanes={"main": 0})
    hand.submit("background", priority=10)
    hand.submit("task", source="task", priority=3)
    hand.submit("message", priority=4)
    hand.submit("background task", source="task", priority=11)
    hand.submit("first", source="task", priority=0)
    assert order_of(hand) == ["first", "task", "message", "background", "background task"]


def test_f2_a_task_of_another_agent_has_its_turn_among_messages() -> None:
    """The agent whose message just ended is at hand, but it is not the one that is next."""
    hand = ByHand(lanes={"main": 1})
    for name, source in (("a0", "message"), ("a1", "message"), ("b0", "task")):
        hand.submit(name, name[0], source=source)
    hand.end("a0")
    assert hand.running == ["b0"]


def test_f2_inside_an_agent_priority_holds_also_when_nobody_was_served_yet() -> None:
    hand = ByHand(lanes={"main": 0})
    hand.submit("b", "b", priority=9)
    hand.submit("second", "a", source="task", priority=5)
    hand.submit("first", "a", priority=0)
    mine = [name for name in order_of(hand) if name != "b"]
    assert mine == ["first", "second"]


def stream_until(hand: ByHand, name: str, seconds: int) -> int:
    """A new run of priority 0 each second, and each second one ends; how long `name` waits."""
    for second in range(seconds):
        hand.submit(f"{name}<{second}")
        if name in hand.tickets:
            return second
        hand.wait(SECOND)
        hand.end_oldest()
    return seconds


def test_f3_a_stream_of_priority_0_cannot_starve_priority_5() -> None:
    hand = ByHand(lanes={"main": 1})
    hand.submit("first")
    hand.submit("x", priority=5)
    assert 149 <= stream_until(hand, "x", 400) <= 153


def test_f3_ageing_is_a_setting() -> None:
    settings = msgspec.structs.replace(
        Settings(), ageing=2 * SECOND, lanes={**Settings().lanes, "main": LaneSettings(1)}
    )
    hand = ByHand(settings)
    hand.submit("first")
    hand.submit("x", priority=5)
    assert 9 <= stream_until(hand, "x", 400) <= 13


def test_f3_one_step_per_ageing() -> None:
    """Priority 1 that came 30 s and a bit before priority 0 is first; a bit less before, second."""
    for gap, first in ((31 * SECOND, "one"), (29 * SECOND, "zero")):
        hand = ByHand(lanes={"main": 0})
        hand.submit("one", priority=1)
        hand.wait(gap)
        hand.submit("zero", priority=0)
        assert order_of(hand)[0] == first


def test_f3_x5_reserved_slots_look_at_the_submitted_priority() -> None:
    hand = ByHand(lanes={"main": LaneSettings(1, reserve=1)})
    hand.submit("old", priority=10)
    hand.wait(24 * 60 * MINUTE)
    assert hand.running == []
    hand.submit("new", priority=9)
    assert hand.running == ["new"]


def shares(width: int, weights: dict[str, int], starts: int = 240) -> dict[str, int]:
    """How many of so many starts each agent gets while all have work waiting."""
    hand = ByHand(
        lanes={"main": width},
        agents={name: AgentSettings(weight=weight) for name, weight in weights.items()},
    )
    for number in range(starts):
        for agent in weights:
            hand.submit(f"{agent}{number}", agent)
    hand.end_oldest(starts)
    return {agent: sum(name[0] == agent for name in hand.started[:starts]) for agent in weights}


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 6, 8, 30])
def test_x8_an_agent_of_weight_2_starts_twice_as_often_at_any_width(width: int) -> None:
    found = shares(width, {"a": 2, "b": 1})
    assert found["a"] == pytest.approx(160, abs=6)


def test_x8_three_weights_share_by_their_sizes() -> None:
    found = shares(1, {"a": 3, "b": 2, "c": 1})
    assert found == {
        "a": pytest.approx(120, abs=2),
        "b": pytest.approx(80, abs=2),
        "c": pytest.approx(40, abs=2),
    }


def test_x8_weights_of_one_change_nothing() -> None:
    assert shares(1, {"a": 1, "b": 1}, 100) == {"a": 50, "b": 50}


def test_x8_a_light_agent_is_never_starved_by_a_heavy_one() -> None:
    hand = ByHand(lanes={"main": 1}, agents={"a": AgentSettings(weight=10)})
    for number in range(60):
        hand.submit(f"a{number}", "a")
    hand.submit("b", "b")
    hand.end_oldest(12)
    assert "b" in hand.started


def test_x8_a_weight_can_be_changed_while_running() -> None:
    hand = ByHand(lanes={"main": 1})
    for number in range(200):
        hand.submit(f"a{number}", "a")
        hand.submit(f"b{number}", "b")
    hand.set_agent("a", AgentSettings(weight=3))
    hand.end_oldest(100)
    assert sum(name[0] == "a" for name in hand.started[:100]) == pytest.approx(75, abs=3)
