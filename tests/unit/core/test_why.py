"""Why is it waiting? Every rule can be the answer, with the right particulars (X-1)."""

from collections.abc import Callable

import msgspec
import pytest

from headway.core.actions import AskEstimate, Limited
from headway.core.kernel import Kernel
from headway.core.why import explain, queue_status, session_views
from headway.model.run import QueueOptions, Route, RunId, Sender, SessionKey
from headway.model.settings import AgentSettings, Budget, LaneSettings, Limits, Settings
from headway.model.time import HOUR, MILLISECOND, MINUTE, SECOND, Instant
from headway.model.words import Mode, Rule, State
from tests.unit.core.by_hand import NOON, ByHand

WEB = Route("web", peer="42")


def not_due() -> ByHand:
    hand = ByHand()
    hand.submit("x", due="1h")
    return hand


def debounce() -> ByHand:
    hand = ByHand()
    hand.submit("x", route=WEB)
    return hand


def retry() -> ByHand:
    hand = ByHand()
    hand.submit("x", retries=1)
    hand.fail("x")
    return hand


def collecting() -> ByHand:
    """The window of its own sender has closed, but another one is still writing."""
    hand = ByHand()
    hand.submit("busy", session="s")
    hand.submit("x", session="s", mode="collect", debounce="2s", sender=Sender("ann"))
    hand.wait(SECOND)
    hand.submit("y", session="s", mode="collect", debounce="2s", sender=Sender("zoe"))
    hand.wait(SECOND)
    hand.end("busy")
    return hand


def session_busy() -> ByHand:
    hand = ByHand()
    hand.submit("busy", session="s")
    hand.submit("x", session="s")
    return hand


def session_order() -> ByHand:
    hand = ByHand()
    hand.submit("busy", session="s")
    hand.submit("first", session="s")
    hand.submit("x", session="s")
    return hand


def session_throttled() -> ByHand:
    hand = estimating()
    hand.kernel.estimated(SessionKey("s"), hand.now, 60, 100)
    return hand


def estimating() -> ByHand:
    hand = ByHand()
    hand.kernel.set_estimating(True)
    hand.submit("busy", session="s", max_concurrent=3)
    hand.submit("x", session="s", max_concurrent=3)
    return hand


def steered() -> ByHand:
    hand = ByHand(agents={"a": AgentSettings(steerable=True)})
    hand.submit("busy", session="s")
    hand.submit("x", session="s", mode="steer")
    assert hand.takes("busy", "x")
    return hand


def rate_limited() -> ByHand:
    hand = ByHand(agents={"a": AgentSettings(provider="key")})
    hand.submit("limited")
    hand.end("limited", Limited(MINUTE))
    hand.submit("x")
    return hand


def agent_budget() -> ByHand:
    hand = ByHand(agents={"a": AgentSettings(budget=Budget(runs_per_minute=4))})
    for number in range(4):
        hand.submit(f"r{number}")
    hand.submit("x")
    return hand


def lane_budget() -> ByHand:
    hand = ByHand(lanes={"main": LaneSettings(9, budget=Budget(runs_per_minute=2))})
    for number in range(2):
        hand.submit(f"r{number}")
    hand.submit("x")
    return hand


def agent_quota() -> ByHand:
    hand = ByHand(agents={"a": AgentSettings(max_inflight=1)})
    hand.submit("r", source="task")
    hand.submit("x", source="task")
    return hand


def inflight_limit() -> ByHand:
    hand = ByHand(limits=Limits(max_inflight=1))
    hand.submit("r", source="task")
    hand.submit("x", source="task")
    return hand


def lane_paused() -> ByHand:
    hand = ByHand(lanes={"main": 0})
    hand.submit("x")
    return hand


def lane_reserved() -> ByHand:
    hand = ByHand(lanes={"main": LaneSettings(2, reserve=2)})
    hand.submit("x", priority=10)
    return hand


def lane_full() -> ByHand:
    hand = ByHand(lanes={"main": 1})
    hand.submit("r")
    hand.submit("x")
    return hand


def draining() -> ByHand:
    hand = ByHand(lanes={"main": 1})
    hand.submit("r")
    hand.submit("x")
    hand.drain(keep_waiting=True)
    return hand


def suspended() -> ByHand:
    hand = ByHand()
    hand.kernel.suspend(hand.now)
    hand.submit("x")
    return hand


def starting() -> ByHand:
    """Its hooks are at work: a slot is taken for it, its runner not called yet."""
    hand = ByHand()
    hand.kernel.set_gated(True)
    hand.submit("x")
    return hand


CASES: dict[Rule, tuple[Callable[[], ByHand], Instant | None, str | None, str]] = {
    Rule.NOT_DUE: (not_due, NOON + HOUR, None, "not due before 1970-01-12T14:46:40.000Z"),
    Rule.DEBOUNCE: (debounce, NOON + 800 * MILLISECOND, None, "until 1970-01-12T13:46:40.800Z"),
    Rule.RETRY: (retry, NOON + 2 * SECOND, None, "tried again at 1970-01-12T13:46:42.000Z"),
    Rule.COLLECTING: (collecting, NOON + 3 * SECOND, None, "until 1970-01-12T13:46:43.000Z"),
    Rule.SESSION_BUSY: (session_busy, None, "busy", "session s is busy with run busy"),
    Rule.SESSION_ORDER: (session_order, None, "first", "run first of session s comes first"),
    Rule.SESSION_THROTTLED: (session_throttled, None, "busy", "session s has little context left"),
    Rule.ESTIMATING: (estimating, None, None, "how much context session s has left"),
    Rule.STEERED: (steered, None, "busy", "taken over by run busy"),
    Rule.RATE_LIMITED: (rate_limited, NOON + MINUTE, None, "provider of agent a"),
    Rule.AGENT_BUDGET: (agent_budget, NOON + 15 * SECOND, None, "agent a has used up its budget"),
    Rule.LANE_BUDGET: (lane_budget, NOON + 30 * SECOND, None, "lane main has used up its budget"),
    Rule.AGENT_QUOTA: (agent_quota, None, None, "agent a has as many tasks in flight as it may"),
    Rule.INFLIGHT_LIMIT: (inflight_limit, None, None, "as many tasks are in flight as may be"),
    Rule.LANE_PAUSED: (lane_paused, None, None, "lane main is paused"),
    Rule.LANE_RESERVED: (lane_reserved, None, None, "reserved for interactive work"),
    Rule.LANE_FULL: (lane_full, None, None, "lane main is full"),
    Rule.DRAINING: (draining, None, None, "the node is draining"),
    Rule.SUSPENDED: (suspended, None, None, "cannot reach its store"),
    Rule.STARTING: (starting, None, None, "about to start"),
}


@pytest.mark.parametrize("rule", CASES)
def test_x1_each_rule_can_be_the_answer_with_its_particulars(rule: Rule) -> None:
    make, until, by, says = CASES[rule]
    why = make().why("x")
    assert (why.rule, why.until, why.by) == (rule, until, by)
    assert (why.run_id, why.lane, why.agent) == ("x", "main", "a")
    assert says in str(why)


def test_x1_every_rule_is_reached_by_a_case() -> None:
    """A run that another node decides for, or a machine, is not in this node's kernel: see `test_elsewhere`."""
    assert set(CASES) == set(Rule) - {Rule.ELSEWHERE, Rule.ADOPTION}


@pytest.mark.parametrize(
    "rule",
    [
        rule
        for rule, (_, until, _, _) in CASES.items()
        if until is not None and rule is not Rule.DEBOUNCE
    ],
)
def test_x1_until_is_the_very_instant_at_which_the_rule_lets_go(rule: Rule) -> None:
    make, until, _, _ = CASES[rule]
    hand = make()
    assert until is not None
    hand.wait(until - hand.now - 1)
    assert hand.why("x").rule is rule
    hand.wait(1)
    live = hand.kernel.stage.runs.get(RunId("x"))
    assert live is None or live.ticket != 0 or hand.why("x").rule is not rule


def test_x1_the_end_of_a_debounce_window_moves_with_each_message() -> None:
    hand = debounce()
    hand.wait(500 * MILLISECOND)
    hand.submit("y", route=WEB)
    assert hand.why("x").until == NOON + 1300 * MILLISECOND
    assert hand.why("y").until == NOON + 1300 * MILLISECOND


def test_x1_a_running_run_is_held_by_nothing_and_an_ended_one_is_not_known_here() -> None:
    hand = ByHand()
    hand.submit("x")
    why = hand.why("x")
    assert (why.rule, why.state) == (None, State.RUNNING)
    hand.end("x")
    assert explain(hand.kernel, RunId("x")) is None
    assert explain(hand.kernel, RunId("never")) is None


def test_x1_the_first_rule_to_lift_is_named_session_before_agent_before_lane() -> None:
    hand = ByHand(lanes={"main": 1}, agents={"a": AgentSettings(max_inflight=1)})
    hand.submit("r", source="task", session="s")
    hand.submit("x", source="task", session="s")
    assert hand.why("x").rule is Rule.SESSION_BUSY
    hand.submit("y", source="task")
    assert hand.why("y").rule is Rule.AGENT_QUOTA
    hand.set_agent("a", AgentSettings())
    assert hand.why("y").rule is Rule.LANE_FULL


def decisions(kernel: Kernel, names: list[str], *, ask: bool) -> list[str]:
    """Play a history to its end, with or without asking why in between."""
    hand = ByHand(kernel.stage.settings)
    hand.kernel.set_estimating(True)
    for number, name in enumerate(names):
        hand.submit(name, "ab"[number % 2], session=f"s{number % 3}", max_concurrent=2)
        if ask:
            for waiting in tuple(hand.kernel.stage.runs):
                hand.why(waiting)
    for _ in range(200):
        for action in tuple(hand.actions):
            if isinstance(action, AskEstimate):
                hand.kernel.estimated(action.session, hand.now, 1, 100)
        hand.read()
        if not hand.tickets:
            break
        hand.end_oldest()
        if ask:
            for waiting in tuple(hand.kernel.stage.runs):
                hand.why(waiting)
    return hand.started


def test_x1_asking_changes_no_decision() -> None:
    settings = msgspec.structs.replace(Settings(), lanes={"main": LaneSettings(3)})
    kernel = Kernel(settings)
    names = [f"r{number}" for number in range(24)]
    asked = decisions(kernel, names, ask=True)
    assert asked == decisions(kernel, names, ask=False)
    assert sorted(asked) == sorted(names)


def test_session_views_show_what_each_session_is_at() -> None:
    hand = ByHand()
    hand.submit("busy", session="s")
    hand.submit("next", session="s")
    hand.submit("typing", session="s", route=WEB)
    hand.submit("done", session="t")
    hand.end("done")
    hand.configure("s", QueueOptions(mode=Mode.COLLECT))
    (view,) = session_views(hand.kernel)
    assert (view.key, view.running, view.waiting, view.debouncing) == (
        "s",
        ("busy",),
        ("next",),
        ("typing",),
    )
    assert view.options == QueueOptions(mode=Mode.COLLECT)


def test_s5_queue_status_says_counts_and_settings() -> None:
    hand = ByHand()
    hand.submit("busy", session="s")
    hand.submit("next", session="s")
    hand.submit("typing", session="s", route=WEB)
    hand.configure("s", QueueOptions(cap=25))
    status = queue_status(hand.kernel, SessionKey("s"), None, WEB)
    assert status == "1 running, 2 waiting; mode queue, cap 25, drop old, debounce 800ms"
    assert queue_status(hand.kernel, SessionKey("idle"), None, WEB).startswith(
        "0 running, 0 waiting; mode queue, cap 10"
    )
