"""Budgets and rate limits hold work back; they do not fail it (X-6)."""

import pytest

from headway.core.actions import NoteHold
from headway.model.settings import AgentSettings, Budget, LaneSettings
from headway.model.time import MINUTE, SECOND
from headway.model.words import Reason, Rule, State
from tests.unit.core.by_hand import NOON, ByHand


def many(hand: ByHand, prefix: str, count: int, agent: str = "a", **options: object) -> None:
    for number in range(count):
        hand.submit(f"{prefix}{number}", agent, **options)


def test_x6_an_agent_starts_so_many_runs_a_minute_and_the_rest_follow_evenly() -> None:
    hand = ByHand(agents={"a": AgentSettings(budget=Budget(runs_per_minute=3))})
    many(hand, "r", 6)
    assert len(hand.running) == 3
    assert hand.kernel.wake_at == NOON + 20 * SECOND
    hand.wait(20 * SECOND - 1)
    assert len(hand.running) == 3
    hand.wait(1)
    assert len(hand.running) == 4
    hand.wait(40 * SECOND)
    assert len(hand.running) == 6
    assert [hand.started_at[f"r{n}"] - NOON for n in range(4)] == [0, 0, 0, 20 * SECOND]


def test_x6_other_agents_are_not_held_by_it() -> None:
    hand = ByHand(agents={"a": AgentSettings(budget=Budget(runs_per_minute=1))})
    many(hand, "a", 3)
    many(hand, "b", 3, "b")
    assert hand.running == ["a0", "b0", "b1", "b2"]
    assert hand.why("a1").rule is Rule.AGENT_BUDGET


def test_x6_a_lanes_budget_counts_the_runs_of_all_agents() -> None:
    hand = ByHand(lanes={"main": LaneSettings(9, budget=Budget(runs_per_minute=2))})
    for agent in "abc":
        hand.submit(agent, agent)
    hand.submit("elsewhere", "d", lane="team")
    assert hand.running == ["a", "b", "elsewhere"]
    assert hand.why("c").rule is Rule.LANE_BUDGET
    hand.wait(30 * SECOND)
    assert "c" in hand.running


def test_x6_tokens_are_taken_when_they_are_reported_and_may_go_into_debt() -> None:
    hand = ByHand(agents={"a": AgentSettings(budget=Budget(tokens_per_minute=60))})
    hand.submit("x")
    hand.uses("x", 90)
    hand.submit("y")
    assert hand.running == ["x"]
    why = hand.why("y")
    assert (why.rule, why.until) == (Rule.AGENT_BUDGET, NOON + 31 * SECOND)
    hand.wait(31 * SECOND - 1)
    assert hand.running == ["x"]
    hand.wait(1)
    assert hand.running == ["x", "y"]


def test_x6_tokens_count_for_the_lane_too() -> None:
    hand = ByHand(lanes={"main": LaneSettings(9, budget=Budget(tokens_per_minute=60))})
    hand.submit("x", "a")
    hand.uses("x", 60)
    hand.submit("y", "b")
    assert hand.why("y").rule is Rule.LANE_BUDGET
    hand.wait(SECOND)
    assert hand.running == ["x", "y"]


def test_x6_when_both_budgets_are_used_up_the_later_one_decides() -> None:
    hand = ByHand(
        lanes={"main": LaneSettings(9, budget=Budget(runs_per_minute=1))},
        agents={"a": AgentSettings(budget=Budget(runs_per_minute=2))},
    )
    hand.submit("x")
    hand.submit("y")
    hand.wait(30 * SECOND)
    assert hand.running == ["x"]
    hand.wait(30 * SECOND)
    assert hand.running == ["x", "y"]


def test_x6_changing_a_budget_takes_effect_at_once() -> None:
    hand = ByHand(agents={"a": AgentSettings(budget=Budget(runs_per_minute=1))})
    many(hand, "r", 3)
    assert hand.running == ["r0"]
    hand.set_agent("a", AgentSettings())
    assert hand.running == ["r0", "r1", "r2"]


def test_x6_a_changed_lane_budget_starts_what_now_may() -> None:
    hand = ByHand(lanes={"main": LaneSettings(9, budget=Budget(runs_per_minute=1))})
    many(hand, "r", 3)
    hand.set_lane("main", 9)
    assert hand.running == ["r0", "r1", "r2"]


def test_x6_changing_something_else_does_not_refill_the_bucket() -> None:
    budget = Budget(runs_per_minute=1)
    hand = ByHand(
        lanes={"main": LaneSettings(9, budget=budget)}, agents={"a": AgentSettings(budget=budget)}
    )
    many(hand, "r", 3)
    hand.set_agent("a", AgentSettings(weight=2, budget=budget))
    hand.set_lane("main", LaneSettings(10, budget=budget))
    assert hand.running == ["r0"]


def test_x6_a_rate_limit_holds_everything_of_the_provider_and_the_run_is_tried_again() -> None:
    shared = AgentSettings(provider="key")
    hand = ByHand(agents={"a": shared, "b": shared})
    hand.submit("a0", "a")
    hand.limit("a0", MINUTE)
    hand.submit("a1", "a")
    hand.submit("b0", "b")
    hand.submit("other", "c")
    assert hand.running == ["other"]
    assert [a for a in hand.actions if isinstance(a, NoteHold)] == [NoteHold("key", NOON + MINUTE)]
    assert (hand.why("b0").rule, hand.why("b0").until) == (Rule.RATE_LIMITED, NOON + MINUTE)
    hand.wait(MINUTE - 1)
    assert hand.running == ["other"]
    hand.wait(1)
    assert set(hand.running) == {"other", "a0", "a1", "b0"}
    assert hand.attempts["a0"] == 1, "being told to wait costs no attempt"
    assert not hand.outcomes


def test_x6_an_agent_without_a_provider_key_is_held_back_by_itself() -> None:
    hand = ByHand()
    many(hand, "r", 2)
    hand.limit("r0", MINUTE)
    hand.submit("r2")
    hand.submit("other", "b")
    assert hand.running == ["r1", "other"]
    assert hand.why("r2").rule is Rule.RATE_LIMITED
    hand.wait(MINUTE)
    assert set(hand.running) == {"r0", "r1", "r2", "other"}


def test_x6_running_turns_of_the_provider_go_on() -> None:
    hand = ByHand(agents={"a": AgentSettings(provider="key")})
    many(hand, "r", 2)
    hand.limit("r0", MINUTE)
    assert hand.cuts == []
    hand.end("r1")
    assert hand.outcomes["r1"].ok


def test_x6_the_longest_pause_counts() -> None:
    hand = ByHand(agents={"a": AgentSettings(provider="key")})
    many(hand, "r", 3)
    hand.limit("r0", 2 * MINUTE)
    hand.limit("r1", MINUTE)
    hand.wait(MINUTE)
    assert hand.running == ["r2"]
    hand.wait(MINUTE)
    assert set(hand.running) == {"r0", "r1", "r2"}


def test_x6_r5_the_limited_run_holds_its_session_and_no_slot() -> None:
    hand = ByHand(lanes={"main": 1})
    hand.submit("x", session="s")
    hand.submit("behind", session="s")
    hand.submit("other", "b")
    hand.limit("x", MINUTE)
    assert hand.running == ["other"]
    hand.end("other")
    assert hand.running == []
    hand.wait(MINUTE)
    assert hand.running == ["x"]


def test_x6_a_provider_that_always_says_wait_ends_the_run_at_last() -> None:
    """Otherwise a dead key would keep runs for ever."""
    hand = ByHand()
    hand.submit("x")
    tries = 0
    while hand.ending("x") is None:
        tries += 1
        assert tries < 100
        hand.limit("x", SECOND)
        hand.wait(SECOND)
    assert hand.ending("x") == (State.FAILED, Reason.RATE_LIMITED)
    assert tries == 10


def test_x6_a_good_answer_in_between_starts_the_count_anew() -> None:
    hand = ByHand()
    hand.submit("x", retries=1)
    for _ in range(9):
        hand.limit("x", SECOND)
        hand.wait(SECOND)
    hand.fail("x")
    hand.wait(3 * SECOND)
    for _ in range(9):
        hand.limit("x", SECOND)
        hand.wait(SECOND)
    assert hand.ending("x") is None


def test_x6_f5_a_deadline_beats_the_pause_for_all_who_wait() -> None:
    hand = ByHand(agents={"a": AgentSettings(provider="key")})
    hand.submit("x", source="task", deadline="1h")
    hand.limit("x", 10 * MINUTE)
    hand.submit("y", source="task", deadline="5m")
    hand.wait(5 * MINUTE)
    assert hand.ending("y") == (State.FAILED, Reason.DEADLINE_QUEUED)
    assert hand.ended_at["y"] == NOON + 5 * MINUTE
    assert hand.started == ["x"]


def test_x6_f5_a_pause_beyond_its_deadline_ends_the_limited_run() -> None:
    hand = ByHand()
    hand.submit("x", source="task", deadline="1m")
    hand.limit("x", 2 * MINUTE)
    hand.wait(MINUTE)
    assert hand.ending("x") in {
        (State.FAILED, Reason.RATE_LIMITED),
        (State.FAILED, Reason.DEADLINE_QUEUED),
    }
    assert hand.started == ["x"]


@pytest.mark.parametrize("budget", [Budget(runs_per_minute=5), Budget(tokens_per_minute=5)])
def test_x6_an_idle_budget_sets_no_alarm(budget: Budget) -> None:
    """A node with nothing to do uses no CPU."""
    hand = ByHand(agents={"a": AgentSettings(budget=budget)})
    hand.submit("x")
    hand.end("x")
    assert hand.kernel.wake_at is None
