"""Reserved capacity and preemption: background work never keeps a user waiting (X-5)."""

import pytest

from headway.core.why import lane_views
from headway.model.run import RunId
from headway.model.settings import AgentSettings, Budget, LaneSettings
from headway.model.time import MINUTE, SECOND
from headway.model.words import Cut, Reason, Rule, State
from tests.unit.core.by_hand import ByHand


def one_slot() -> ByHand:
    """A lane of width 1, and an agent `bg` whose runs are preemptible."""
    return ByHand(lanes={"main": 1}, agents={"bg": AgentSettings(preemptible=True)})


def test_x5_background_work_leaves_the_reserve_free() -> None:
    hand = ByHand(lanes={"main": LaneSettings(3, reserve=1)})
    for number in range(4):
        hand.submit(f"b{number}", priority=10)
    assert len(hand.running) == 2
    assert hand.why("b3").rule is Rule.LANE_RESERVED
    hand.submit("user", priority=9)
    assert "user" in hand.running


def test_x5_interactive_work_may_use_every_slot() -> None:
    hand = ByHand(lanes={"main": LaneSettings(3, reserve=1)})
    for number in range(4):
        hand.submit(f"u{number}")
    hand.submit("b", priority=10)
    assert hand.running == ["u0", "u1", "u2"]
    hand.end("u0")
    hand.end("u1")
    assert hand.running == ["u2", "u3", "b"]


def test_x5_background_tasks_are_background_too() -> None:
    hand = ByHand(lanes={"main": LaneSettings(1, reserve=1)})
    hand.submit("b", source="task", priority=10)
    hand.submit("f", source="firing", lane="main")
    assert hand.running == []
    hand.submit("t", source="task", priority=9)
    assert hand.running == ["t"]


def test_x5_l2_the_reserve_can_be_changed_live() -> None:
    hand = ByHand(lanes={"main": LaneSettings(2, reserve=2)})
    hand.submit("b", priority=10)
    assert hand.running == []
    hand.set_lane("main", LaneSettings(2, reserve=1))
    assert hand.running == ["b"]


def test_x5_a_preemptible_background_turn_yields_to_a_user_and_comes_back() -> None:
    hand = one_slot()
    hand.submit("b", "bg", priority=10)
    hand.submit("b2", priority=10)
    hand.submit("user")
    assert hand.cuts == [("b", Cut.PREEMPTED)]
    assert hand.running == ["b"], "S-3: its slot is taken until it has returned"
    hand.fail("b", "cancelled")
    assert hand.running == ["user"], "the freed slot goes to the user's turn"
    assert hand.state("b") is State.QUEUED
    hand.end("user")
    assert hand.running == ["b"]
    assert hand.attempts["b"] == 1, "no attempt is lost"


def test_x5_preempted_again_and_again_it_still_loses_no_attempt() -> None:
    hand = one_slot()
    hand.submit("b", "bg", priority=10, max_attempts=1)
    for number in range(5):
        hand.submit(f"u{number}")
        hand.fail("b")
        hand.end(f"u{number}")
    hand.end("b")
    assert hand.outcomes["b"].ok


def test_x5_the_freed_slot_is_the_users_whatever_else_waits() -> None:
    """Older background work, tasks, an agent with nothing in flight: all wait behind the user."""
    hand = one_slot()
    hand.submit("b", "bg", priority=10)
    hand.submit("old background", "c", priority=10)
    hand.submit("task", "d", source="task", deadline="1h")
    hand.wait(10 * MINUTE)
    hand.submit("user", "a")
    hand.fail("b")
    assert hand.running == ["user"]


def test_x5_only_background_turns_marked_preemptible_yield() -> None:
    hand = ByHand(lanes={"main": 2})
    hand.submit("not marked", priority=10)
    hand.submit("not background", priority=9, preemptible=True)
    hand.submit("user")
    assert hand.cuts == []


def test_x5_two_interactive_turns_of_a_preemptible_agent_do_not_cut_each_other() -> None:
    hand = one_slot()
    hand.submit("one", "bg")
    hand.submit("two", "bg")
    assert hand.cuts == []
    hand.end("one")
    hand.end("two")
    assert hand.started == ["one", "two"]


def test_x5_background_work_does_not_preempt_background_work() -> None:
    hand = one_slot()
    hand.submit("b", "bg", priority=20)
    hand.submit("better", priority=10)
    assert hand.cuts == []


def test_x5_as_many_yield_as_users_wait_and_no_more() -> None:
    hand = ByHand(lanes={"main": 3}, agents={"bg": AgentSettings(preemptible=True)})
    for number in range(3):
        hand.submit(f"b{number}", "bg", priority=10)
    hand.submit("u0")
    assert len(hand.cuts) == 1
    hand.submit("u1")
    assert len(hand.cuts) == 2
    hand.wait(SECOND)
    assert len(hand.cuts) == 2
    for name, _ in tuple(hand.cuts):
        hand.fail(name)
    assert {"u0", "u1"} < set(hand.running)
    assert len(hand.cuts) == 2


def test_x5_the_youngest_yields_because_it_loses_least() -> None:
    hand = ByHand(lanes={"main": 2}, agents={"bg": AgentSettings(preemptible=True)})
    hand.submit("old", "bg", priority=10)
    hand.wait(MINUTE)
    hand.submit("young", "bg", priority=10)
    hand.submit("user")
    assert hand.cuts == [("young", Cut.PREEMPTED)]


def test_x5_nothing_yields_while_there_is_a_free_slot() -> None:
    hand = ByHand(lanes={"main": 2}, agents={"bg": AgentSettings(preemptible=True)})
    hand.submit("b", "bg", priority=10)
    hand.submit("user")
    assert hand.cuts == []
    assert hand.running == ["b", "user"]


def test_x5_no_churn_a_user_behind_its_own_session_cuts_nobody() -> None:
    hand = ByHand(lanes={"main": 2}, agents={"bg": AgentSettings(preemptible=True)})
    hand.submit("busy", session="s")
    hand.submit("b", "bg", priority=10)
    hand.submit("behind", session="s")
    assert hand.cuts == []


def test_x5_no_churn_a_user_of_the_same_session_cuts_nobody() -> None:
    """The cut turn would come back to the head of the session, in front of the user's (R-5)."""
    hand = one_slot()
    hand.submit("b", "bg", session="s", priority=10, max_concurrent=2)
    hand.submit("user", session="s", max_concurrent=2)
    assert hand.cuts == []
    hand.end("b")
    assert hand.running == ["user"]


def test_x5_no_churn_a_user_whose_provider_is_held_cuts_nobody() -> None:
    hand = ByHand(
        lanes={"main": 2},
        agents={"bg": AgentSettings(preemptible=True), "u": AgentSettings(provider="p")},
    )
    hand.submit("b1", "bg", priority=10)
    hand.submit("u1", "u")
    hand.submit("b2", "bg", priority=10)
    hand.limit("u1", MINUTE)
    hand.submit("u2", "u")
    assert hand.running == ["b1", "b2"]
    assert hand.cuts == []
    hand.wait(MINUTE)
    assert len(hand.cuts) == 2, "now both of them could start"


def test_x5_no_churn_what_would_be_cut_at_once_does_not_start() -> None:
    """Older, and of an agent with nothing in flight: it still lets the user's turn go first."""
    hand = ByHand(lanes={"main": 0}, agents={"bg": AgentSettings(preemptible=True)})
    hand.submit("b", "bg", priority=10)
    hand.wait(60 * MINUTE)
    hand.submit("user")
    hand.set_lane("main", 1)
    assert hand.running == ["user"]
    hand.end("user")
    assert hand.running == ["b"]
    assert hand.cuts == []


def test_x5_no_churn_when_the_agents_budget_is_used_up() -> None:
    budget = AgentSettings(budget=Budget(runs_per_minute=1))
    hand = ByHand(lanes={"main": 1}, agents={"bg": AgentSettings(preemptible=True), "u": budget})
    hand.submit("u1", "u")
    hand.end("u1")
    hand.submit("b", "bg", priority=10)
    hand.submit("u2", "u")
    assert hand.cuts == []
    hand.wait(MINUTE)
    assert hand.cuts == [("b", Cut.PREEMPTED)]


def test_x5_no_churn_when_the_lanes_budget_is_used_up() -> None:
    hand = ByHand(
        lanes={"main": LaneSettings(1, budget=Budget(runs_per_minute=1))},
        agents={"bg": AgentSettings(preemptible=True)},
    )
    hand.submit("b", "bg", priority=10)
    hand.submit("user")
    assert hand.cuts == [], "nobody could use the slot before the minute is over"
    hand.wait(MINUTE)
    assert hand.cuts == [("b", Cut.PREEMPTED)]


def test_x5_l4_a_turn_on_a_borrowed_slot_is_not_cut_for_a_slot_that_is_not_the_lanes() -> None:
    hand = ByHand(lanes={"main": 1})
    hand.submit("parent")
    hand.submit("child", parent="parent", lane="main", priority=10, preemptible=True)
    hand.awaits("parent", "child")
    hand.submit("user")
    hand.submit("user 2")
    assert hand.cuts == []


def test_x5_l4_a_turn_that_has_lent_its_slot_is_not_cut() -> None:
    hand = ByHand(lanes={"main": 1})
    hand.submit("parent", priority=10, preemptible=True)
    hand.submit("child", parent="parent", lane="main", priority=10)
    hand.awaits("parent", "child")
    hand.submit("user")
    assert hand.running == ["parent", "child"]
    assert hand.cuts == []


def test_x5_l4_a_turn_is_never_cut_for_its_own_sub_run() -> None:
    """It would start another one in its next attempt, and be cut again."""
    hand = ByHand(lanes={"main": 1})
    hand.submit("parent", priority=10, preemptible=True)
    hand.submit("child", parent="parent", lane="main")
    assert hand.cuts == []
    hand.awaits("parent", "child")
    assert hand.running == ["parent", "child"]


def test_x5_if_the_user_goes_away_the_turn_that_was_cut_goes_on() -> None:
    hand = one_slot()
    hand.submit("b", "bg", priority=10)
    hand.submit("user")
    hand.cancel("user")
    hand.fail("b")
    assert hand.running == ["b"]
    hand.submit("task", source="task")
    hand.end("b")
    assert hand.running == ["task"], "nothing is owed to users any more"


@pytest.mark.parametrize("how", ["stop", "stop_all", "cancel"])
def test_x3_x5_stopping_reaches_a_turn_that_is_being_preempted(how: str) -> None:
    hand = one_slot()
    hand.submit("b", "bg", session="s", priority=10)
    hand.submit("user", session="t")
    stopped = hand.cancel("b") if how == "cancel" else getattr(hand, how)("s")
    assert (stopped.running, stopped.waiting) == (1, 0)
    hand.fail("b")
    assert hand.ending("b") == (State.CANCELLED, Reason.STOPPED)
    hand.end("user")
    assert hand.running == []


def test_x5_a_grace_that_runs_out_frees_the_slot_for_the_user() -> None:
    hand = one_slot()
    hand.submit("b", "bg", priority=10)
    hand.submit("user")
    hand.wait(10 * SECOND)
    assert hand.abandoned == ["b"]
    assert hand.running == ["user"]
    assert hand.state("b") is State.QUEUED


def test_x5_s7_collected_background_turns_can_be_preempted_and_end() -> None:
    hand = one_slot()
    hand.submit("busy")
    for name in ("x", "y"):
        hand.submit(name, "bg", session="s", priority=10, mode="collect")
    hand.end("busy")
    (whole,) = hand.running
    assert hand.kernel.stage.runs[RunId(whole)].run.merged_from == ("x", "y")
    hand.submit("user")
    assert hand.cuts == [(whole, Cut.PREEMPTED)]
    hand.fail(whole)
    hand.end("user")
    hand.end(whole)
    assert hand.outcomes[whole].ok
    hand.submit("user 2")
    hand.submit("user 3")
    assert len(hand.cuts) == 1


def test_x5_counters_are_even_after_everything_has_ended() -> None:
    hand = ByHand(
        lanes={"main": LaneSettings(2, reserve=1)}, agents={"bg": AgentSettings(preemptible=True)}
    )
    for number in range(4):
        hand.submit(f"b{number}", "bg", priority=10)
        hand.submit(f"u{number}")
    for _ in range(40):
        if hand.tickets:
            name = hand.running[0]
            hand.fail(name, permanent=True)
    view = next(view for view in lane_views(hand.kernel) if view.name == "main")
    assert (view.running, view.waiting) == (0, 0)
    hand.submit("last", "bg", priority=10)
    assert hand.running == ["last"]
