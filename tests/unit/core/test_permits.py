"""A lane's limit over all nodes, and the room that is left for other sessions (L-8, N-17, N-18)."""

from headway.core.actions import Limited
from headway.model.run import LaneName
from headway.model.settings import LaneSettings
from headway.model.time import MINUTE
from headway.model.words import Rule
from tests.unit.core.by_hand import ByHand

MAIN = LaneName("main")
CRON = LaneName("cron")


def shared(width: int, limit: int, reserve: int = 0) -> ByHand:
    return ByHand(lanes={"main": LaneSettings(width, reserve, cluster_limit=limit)})


def permit(hand: ByHand, count: int) -> None:
    hand.kernel.set_permits(MAIN, count, hand.now)
    hand.read()


def ask(hand: ByHand, *names: str) -> None:
    for name in names:
        hand.submit(name)


def test_l8_nothing_starts_without_a_permit() -> None:
    hand = shared(5, 3)
    ask(hand, "x", "y")
    assert (hand.started, hand.why("x").rule) == ([], Rule.LANE_FULL)
    permit(hand, 1)
    assert hand.running == ["x"]
    permit(hand, 3)
    assert hand.running == ["x", "y"]


def test_l8_permits_that_were_given_back_are_not_used() -> None:
    hand = shared(5, 3)
    permit(hand, 2)
    ask(hand, "x", "y", "z")
    permit(hand, 1)
    hand.end("x")
    assert hand.running == ["y"]
    hand.end("y")
    assert hand.running == ["z"]


def test_l8_a_lane_is_never_wider_than_its_own_width() -> None:
    hand = shared(1, 9)
    permit(hand, 5)
    ask(hand, "x", "y")
    assert hand.running == ["x"]


def test_l8_as_many_permits_are_wanted_as_could_be_used() -> None:
    hand = shared(5, 3)
    assert (hand.kernel.limited_lanes, hand.kernel.wanted_permits()) == (True, {MAIN: 0})
    ask(hand, "x")
    assert hand.kernel.wanted_permits() == {MAIN: 1}
    permit(hand, 1)
    assert hand.kernel.wanted_permits() == {MAIN: 1}
    ask(hand, "y", "z", "more")
    assert hand.kernel.wanted_permits() == {MAIN: 3}
    hand.set_lane("main", LaneSettings(2, cluster_limit=3))
    assert hand.kernel.wanted_permits() == {MAIN: 2}


def test_l8_a_limit_that_is_taken_away_leaves_the_width() -> None:
    hand = shared(2, 1)
    ask(hand, "x", "y")
    hand.set_lane("main", 2)
    assert hand.running == ["x", "y"]
    assert (hand.kernel.limited_lanes, hand.kernel.wanted_permits()) == (False, {})


def test_l1_a_paused_lane_is_paused_with_a_limit_too() -> None:
    hand = shared(0, 3)
    ask(hand, "x")
    assert hand.why("x").rule is Rule.LANE_PAUSED


def test_n17_room_is_what_is_neither_taken_nor_ready() -> None:
    hand = ByHand(lanes={"main": 3})
    assert hand.kernel.room()[MAIN] == 3
    ask(hand, "x", "y")
    assert hand.kernel.room()[MAIN] == 1
    ask(hand, "z", "more")
    assert hand.kernel.room()[MAIN] == 0
    hand.set_lane("main", 1)
    assert hand.kernel.room()[MAIN] == 0
    assert hand.kernel.room()[CRON] == 30


def test_n17_runs_of_one_session_take_no_more_room_than_it_can_use() -> None:
    hand = ByHand(lanes={"main": 3})
    for name in ("x", "y", "z"):
        hand.submit(name, session="s")
    assert hand.kernel.room()[MAIN] == 2


def test_n18_a_lane_with_a_limit_has_room_before_it_has_permits() -> None:
    hand = shared(5, 3)
    assert hand.kernel.room()[MAIN] == 3
    ask(hand, "x", "y")
    assert hand.kernel.room()[MAIN] == 1


def test_x6_sessions_of_an_agent_that_is_held_back_take_no_room_from_others() -> None:
    hand = ByHand(lanes={"main": 3})
    hand.submit("first", "held")
    hand.end("first", Limited(MINUTE))
    hand.cancel("first")
    assert hand.kernel.room()[MAIN] == 3
    for number in range(4):
        hand.submit(f"h{number}", "held")
    assert hand.kernel.room()[MAIN] == 2
    for number in range(4, 9):
        hand.submit(f"h{number}", "held")
    assert hand.kernel.room()[MAIN] == 0
    hand.submit("free", "other")
    assert hand.running == ["free"]
