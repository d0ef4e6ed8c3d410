"""The place is the number of starts of its lane before it, if nothing else arrives (X-1, T-5)."""

from collections.abc import Callable

import pytest

from headway.core import forecast
from headway.core.forecast import DEFAULT_SPAN
from headway.model.run import Route, RunId
from headway.model.settings import AgentSettings, Budget, LaneSettings, Limits
from headway.model.time import MINUTE, SECOND
from headway.model.words import State
from tests.unit.core.by_hand import ByHand


def agents_in_turn() -> ByHand:
    hand = ByHand(lanes={"main": 2})
    for number in range(9):
        hand.submit(f"a{number}", "a")
    for number in range(3):
        hand.submit(f"b{number}", "b")
    hand.submit("c0", "c")
    return hand


def priorities() -> ByHand:
    hand = ByHand(lanes={"main": 1})
    for number in range(12):
        hand.submit(f"r{number}", "ab"[number % 2], priority=(number * 7) % 5)
    return hand


def sessions() -> ByHand:
    hand = ByHand(lanes={"main": 3})
    for number in range(15):
        hand.submit(f"r{number}", "abc"[number % 3], session=f"s{number % 4}")
    return hand


def weights() -> ByHand:
    hand = ByHand(lanes={"main": 1}, agents={"a": AgentSettings(weight=3)})
    for number in range(8):
        hand.submit(f"a{number}", "a")
        hand.submit(f"b{number}", "b")
    return hand


def reserve_and_background() -> ByHand:
    hand = ByHand(lanes={"main": LaneSettings(3, reserve=1)})
    for number in range(6):
        hand.submit(f"b{number}", "b", priority=10)
        hand.submit(f"u{number}", "a")
    return hand


def quotas() -> ByHand:
    hand = ByHand(limits=Limits(max_inflight=3, max_inflight_per_agent=2))
    for number in range(6):
        hand.submit(f"a{number}", "a", source="task", deadline="1h")
        hand.submit(f"b{number}", "b", source="task", deadline="1h", lane="team")
    return hand


def budgets() -> ByHand:
    hand = ByHand(agents={"a": AgentSettings(budget=Budget(runs_per_minute=2))})
    for number in range(5):
        hand.submit(f"a{number}", "a")
        hand.submit(f"b{number}", "b", session="s")
    return hand


def later_and_retried() -> ByHand:
    hand = ByHand(lanes={"main": 1})
    hand.submit("retried", retries=1)
    hand.submit("later", due="15s")
    for number in range(4):
        hand.submit(f"r{number}")
    hand.fail("retried")
    return hand


def heartbeats() -> ByHand:
    hand = ByHand(lanes={"main": 1})
    hand.submit("busy", session="s")
    hand.submit("h", session="s", source="heartbeat", lane="main")
    hand.submit("m", session="s")
    hand.submit("other", session="t")
    return hand


def sub_runs() -> ByHand:
    hand = ByHand(lanes={"main": 1})
    hand.submit("parent")
    for number in range(3):
        hand.submit(f"c{number}", "b", parent="parent", lane="main")
        hand.awaits("parent", f"c{number}")
    hand.submit("stranger")
    return hand


def played_out(hand: ByHand) -> list[str]:
    """What really starts from here on, each run taking as long as the forecast supposes."""
    already = len(hand.started)
    for _ in range(500):
        ends = {
            name: hand.started_at[name] + DEFAULT_SPAN
            for name in hand.running
            if not _waits(hand, name)
        }
        alarm_at = hand.kernel.wake_at
        if not ends and alarm_at is None:
            break
        name = min(ends, key=lambda each: (ends[each], hand.tickets[each]), default=None)
        if name is None or (alarm_at is not None and alarm_at <= ends[name]):
            assert alarm_at is not None
            hand.wait(max(0, alarm_at - hand.now))
        else:
            hand.now = max(hand.now, ends[name])
            hand.end(name)
    return hand.started[already:]


def _waits(hand: ByHand, name: str) -> bool:
    ties = hand.kernel.stage.attempts[hand.tickets[name]].ties
    return ties is not None and bool(ties.awaiting)


def one_agent() -> ByHand:
    hand = ByHand(lanes={"main": 2})
    for number in range(9):
        hand.submit(f"r{number}", priority=(number * 5) % 3, deadline="1h", source="task")
    return hand


def preempted() -> ByHand:
    hand = ByHand(lanes={"main": LaneSettings(2, reserve=1)})
    hand.submit("batch", priority=10, preemptible=True)
    hand.submit("user", priority=0)
    for number in range(3):
        hand.submit(f"u{number}", "ab"[number % 2])
        hand.submit(f"b{number}", priority=10, preemptible=True)
    return hand


def own_sub_runs() -> ByHand:
    """A slot is lent to the child, so it starts before a stranger of a better rank."""
    hand = ByHand(lanes={"main": 1})
    hand.submit("parent")
    hand.submit("x")
    hand.submit("y")
    hand.submit("child", parent="parent", lane="main")
    hand.awaits("parent", "child")
    hand.submit("grandchild", parent="child", lane="main")
    return hand


SCENES = [
    agents_in_turn,
    priorities,
    sessions,
    weights,
    reserve_and_background,
    quotas,
    budgets,
    later_and_retried,
    heartbeats,
    sub_runs,
    one_agent,
    preempted,
    own_sub_runs,
]


@pytest.mark.parametrize("scene", SCENES)
def test_t5_a_place_that_need_not_be_played_is_the_same(scene: Callable[[], ByHand]) -> None:
    hand, other = scene(), scene()
    for name in list(hand.kernel.stage.runs):
        seen = forecast.forecast(other.kernel, name)
        assert forecast.place(hand.kernel, name) == (None if seen is None else seen.place)


@pytest.mark.parametrize("scene", SCENES)
def test_x1_t5_every_place_is_exact(scene: Callable[[], ByHand]) -> None:
    hand = scene()
    waiting = [str(name) for name, live in hand.kernel.stage.runs.items() if not live.ticket]
    lanes = {str(name): live.lane.name for name, live in hand.kernel.stage.runs.items()}
    answers = {name: hand.why(name) for name in waiting}
    starts = played_out(hand)
    ahead = {name: starts[: starts.index(name)] for name in waiting}
    assert {name: why.place for name, why in answers.items()} == {
        name: sum(lanes[other] == lanes[name] for other in ahead[name]) for name in waiting
    }
    assert all(why.exact for why in answers.values())
    assert len(waiting) >= 3


def test_x1_l1_an_alias_is_the_same_line() -> None:
    hand = ByHand(lanes={"team": 1, "main": 1})
    for name, lane in (("t", "team"), ("x", "delegate"), ("y", "team"), ("z", "delegate")):
        hand.submit(name, lane=lane)
    for name, lane in (("m", "main"), ("u", "nowhere"), ("v", "main")):
        hand.submit(name, lane=lane)
    assert [hand.why(name).place for name in ("x", "y", "z")] == [0, 1, 2]
    assert [hand.why(name).place for name in ("u", "v")] == [0, 1]


def test_x1_what_waits_in_other_lanes_is_not_in_line_before_it() -> None:
    hand = ByHand(lanes={"main": 1, "team": 1})
    for number in range(5):
        hand.submit(f"t{number}", "b", lane="team")
    hand.submit("busy")
    hand.submit("x")
    assert hand.why("x").place == 0


def test_x1_the_estimate_is_the_time_until_then() -> None:
    hand = ByHand(lanes={"main": 1})
    hand.submit("busy")
    hand.submit("x")
    hand.submit("y")
    hand.wait(4 * SECOND)
    assert hand.why("x").starts_in == 6 * SECOND
    assert hand.why("y").starts_in == 16 * SECOND


def test_x1_the_estimate_learns_from_how_long_the_agents_runs_took() -> None:
    hand = ByHand(lanes={"main": 1})
    hand.submit("first")
    hand.wait(MINUTE)
    hand.end("first")
    hand.submit("busy")
    hand.submit("x")
    assert hand.why("x").starts_in == MINUTE


def test_x1_a_run_that_is_overdue_to_end_is_expected_at_any_moment() -> None:
    hand = ByHand(lanes={"main": 1})
    hand.submit("busy")
    hand.submit("x")
    hand.wait(MINUTE)
    assert hand.why("x").starts_in == 0
    assert hand.why("x").place == 0


def test_x1_what_never_starts_has_no_place() -> None:
    hand = ByHand(lanes={"main": 0})
    hand.submit("paused")
    assert (hand.why("paused").place, hand.why("paused").starts_in) == (None, None)
    hand = ByHand(lanes={"main": 1})
    hand.submit("busy")
    hand.submit("too late", deadline="1s")
    assert hand.why("too late").place is None


def test_x1_a_message_that_will_be_merged_has_the_place_of_the_turn_it_becomes() -> None:
    hand = ByHand(lanes={"main": 1})
    hand.submit("busy")
    hand.submit("first")
    for name in ("x", "y"):
        hand.submit(name, route=Route("web"), debounce="1s")
    assert hand.why("x").place == 1
    assert hand.why("y").place == 1
    hand.submit("s busy", session="s")
    for name in ("c1", "c2"):
        hand.submit(name, session="s", mode="collect", debounce="1s")
    assert hand.why("c1").place == hand.why("c2").place == 3


def test_x1_above_a_bound_the_place_is_counted_by_rank_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forecast, "MOST_RUNS", 5)
    hand = ByHand(lanes={"main": 1})
    for number in range(8):
        hand.submit(f"r{number}")
        hand.wait(1)
    why = hand.why("r7")
    assert (why.place, why.exact) == (6, False)
    assert "about 6 starts before it" in str(why)


def test_x1_looking_ahead_leaves_the_kernel_as_it_was() -> None:
    hand = agents_in_turn()
    stage = hand.kernel.stage
    before = (stage.now, hand.running, list(stage.runs), hand.kernel.wake_at, len(hand.actions))
    for name in list(stage.runs):
        hand.why(name)
    assert before == (
        stage.now,
        hand.running,
        list(stage.runs),
        hand.kernel.wake_at,
        len(hand.actions),
    )
    assert hand.state("a8") is State.QUEUED


def test_x1_a_deep_chain_of_sub_runs_can_be_looked_at() -> None:
    hand = ByHand(lanes={"main": 1})
    hand.submit("r0")
    for depth in range(200):
        hand.submit(f"r{depth + 1}", parent=f"r{depth}", lane="main")
        hand.awaits(f"r{depth}", f"r{depth + 1}")
    hand.submit("x")
    assert hand.why("x").place == 0


def place(hand: ByHand, name: str) -> int | None:
    return forecast.place(hand.kernel, RunId(name))


def test_t5_a_place_counts_until_something_changes() -> None:
    hand = agents_in_turn()
    before = {name: place(hand, name) for name in hand.runs}
    seen = hand.kernel.foreseen
    hand.wait(SECOND)
    assert {name: place(hand, name) for name in hand.runs} == before
    assert hand.kernel.foreseen is seen, "time alone changes nothing"
    hand.submit("new", "c", priority=-5)
    assert hand.kernel.foreseen is seen
    assert place(hand, "new") == 1, "b is served first"
    assert hand.kernel.foreseen is not seen


@pytest.mark.parametrize(
    "change",
    [
        lambda hand: hand.end_oldest(),
        lambda hand: hand.cancel("a8"),
        lambda hand: hand.set_lane("main", 3),
        lambda hand: hand.set_limits(max_inflight=1),
        lambda hand: hand.set_agent("c", AgentSettings(weight=5)),
        lambda hand: hand.clear_lane("main"),
        lambda hand: hand.drain(keep_waiting=True),
        lambda hand: hand.stop("run:a3"),
    ],
)
def test_t5_whatever_happens_is_a_change(change: Callable[[ByHand], object]) -> None:
    hand = agents_in_turn()
    before = hand.kernel.changes
    change(hand)
    assert hand.kernel.changes > before


def test_t5_who_is_in_line_does_not_hang_on_deadlines() -> None:
    """Nobody knows whether a deadline will be met; when it has passed, the place is another one."""
    hand = ByHand(lanes={"main": 1})
    for number in range(10):
        hand.submit(f"r{number}", "ab"[number % 2], source="task", deadline="25s")
    assert [place(hand, f"r{number}") for number in range(1, 10)] == list(range(9))
    assert hand.why("r2").place == 1
    assert hand.why("r5").place is None, "by then its deadline has passed, if all take so long"


def test_t5_what_is_not_seen_to_start_stands_behind_all_that_is() -> None:
    hand = ByHand(lanes={"main": 0, "team": 1})
    for number in range(3):
        hand.submit(f"r{number}", "ab"[number % 2], priority=-number)
    assert [place(hand, f"r{number}") for number in range(3)] == [2, 1, 0]
    hand.set_lane("main", 1)
    hand.submit("foreign", "b", lane="team")
    assert place(hand, "foreign") is None, "it has a slot"


def test_t5_above_the_bound_places_are_counted_by_rank_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(forecast, "MOST_RUNS", 5)
    hand = ByHand(lanes={"main": 1})
    for number in range(9):
        hand.submit(f"r{number}", "ab"[number % 2])
    assert [place(hand, f"r{number}") for number in range(1, 9)] == list(range(8))


def test_t5_the_queue_may_be_full_and_every_place_is_exact() -> None:
    limits = Limits()
    hand = ByHand()
    asked = [f"r{number}" for number in range(limits.max_queue + limits.max_inflight)]
    for number, name in enumerate(asked):
        hand.kernel.stage.floor.limits = limits
        assert hand.submit(name, f"a{number % 20}", source="task") is None
    seen = [forecast.forecast(hand.kernel, RunId(name)) for name in asked[limits.max_inflight :]]
    assert all(each is not None and each.exact for each in seen)
    assert hand.submit("one more", "a0", source="task") is not None
