"""What readers see: every rule that can hold a run has its sentence (X-1)."""

import msgspec
import pytest

from headway.model.run import AgentName, LaneName, RunId, SessionKey
from headway.model.time import SECOND
from headway.model.views import Why
from headway.model.words import Rule, State

UNTIL = 1_750_000_000 * SECOND


def why(rule: Rule | None, **fields: object) -> Why:
    known: dict[str, object] = {
        "run_id": RunId("r1"),
        "state": State.QUEUED,
        "rule": rule,
        "until": UNTIL,
        "by": RunId("r0"),
        "lane": LaneName("night"),
        "agent": AgentName("bob"),
        "session": SessionKey("chat"),
    }
    return Why(**{**known, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        (Rule.NOT_DUE, ["2025-06-15T15:06:40.000Z"]),
        (Rule.DEBOUNCE, ["2025-06-15T15:06:40.000Z"]),
        (Rule.RETRY, ["2025-06-15T15:06:40.000Z"]),
        (Rule.COLLECTING, ["2025-06-15T15:06:40.000Z"]),
        (Rule.SESSION_BUSY, ["chat", "r0"]),
        (Rule.SESSION_ORDER, ["chat", "r0"]),
        (Rule.SESSION_THROTTLED, ["chat", "r0"]),
        (Rule.ESTIMATING, ["chat"]),
        (Rule.STEERED, ["r0"]),
        (Rule.RATE_LIMITED, ["bob", "2025-06-15T15:06:40.000Z"]),
        (Rule.AGENT_BUDGET, ["bob", "2025-06-15T15:06:40.000Z"]),
        (Rule.LANE_BUDGET, ["night", "2025-06-15T15:06:40.000Z"]),
        (Rule.AGENT_QUOTA, ["bob"]),
        (Rule.INFLIGHT_LIMIT, ["in flight"]),
        (Rule.LANE_PAUSED, ["night", "paused"]),
        (Rule.LANE_RESERVED, ["night", "reserved"]),
        (Rule.LANE_FULL, ["night", "full"]),
        (Rule.DRAINING, ["draining"]),
        (Rule.STARTING, ["about to start"]),
    ],
)
def test_x1_each_rule_has_a_sentence_with_its_particulars(rule: Rule, says: list[str]) -> None:
    sentence = str(why(rule))
    assert all(particular in sentence for particular in says)
    assert "None" not in sentence
    assert "{" not in sentence


def test_x1_no_rule_is_without_a_sentence_and_no_two_read_alike() -> None:
    sentences = {rule: str(why(rule)) for rule in Rule}
    assert len(set(sentences.values())) == len(Rule)


@pytest.mark.parametrize(
    ("fields", "tail"),
    [
        ({}, "lane night is full"),
        ({"place": 0}, "; 0 starts before it"),
        ({"place": 1}, "; 1 start before it"),
        ({"place": 7, "starts_in": 90 * SECOND}, "; 7 starts before it, in about 1m30s"),
        ({"place": 7, "exact": False}, "; about 7 starts before it"),
    ],
)
def test_x1_place_and_estimate_in_words(fields: dict[str, object], tail: str) -> None:
    assert str(why(Rule.LANE_FULL, **fields)).endswith(tail)


def test_x1_a_run_that_nothing_holds_says_so() -> None:
    assert str(why(None, state=State.RUNNING)) == "run r1 is running: nothing holds it"


def test_x1_programs_get_the_same_as_json() -> None:
    told = msgspec.json.decode(msgspec.json.encode(why(Rule.LANE_FULL, place=3)))
    assert (told["rule"], told["lane"], told["place"], told["exact"]) == (
        "lane_full",
        "night",
        3,
        True,
    )
