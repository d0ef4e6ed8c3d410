"""Why does it wait, of a session that another node decides for: what is stored tells it (X-1)."""

import pytest

from headway.core.elsewhere import SessionElsewhere
from headway.model.places import Glimpse, Holding, Place, Standing
from headway.model.run import (
    AgentName,
    LaneName,
    QueueOptions,
    Run,
    RunId,
    SessionKey,
    SessionMemory,
)
from headway.model.settings import Settings
from headway.model.time import HOUR, MINUTE, SECOND, Instant
from headway.model.views import RunView, Why
from headway.model.words import Rule, Source, State
from tests.unit.core.by_hand import NOON

S = SessionKey("s")


def a_run(
    run: str,
    source: Source = Source.MESSAGE,
    due_at: Instant | None = None,
    queue: QueueOptions | None = None,
) -> Run:
    return Run(
        RunId(run),
        AgentName("a"),
        S,
        source,
        LaneName("main"),
        0,
        NOON - SECOND,
        due_at=due_at,
        queue=queue,
        max_attempts=2,
    )


def place(
    run: str,
    seq: int,
    standing: Standing | None = None,
    *,
    source: Source = Source.MESSAGE,
    due_at: Instant | None = None,
    queue: QueueOptions | None = None,
) -> Place:
    return Place(a_run(run, source, due_at, queue), seq, standing=standing)


def running(run: str, seq: int) -> Place:
    return Place(a_run(run), seq, 1, started_at=NOON - SECOND)


def held(rule: Rule, until: Instant = NOON + SECOND, after: int = 2, turn: int = 0) -> Standing:
    return Standing(after, turn, rule, until, latest_at=NOON + HOUR)


def seen(
    *places: Place,
    runs: str = "",
    owner: int = 0,
    options: QueueOptions | None = None,
    machine: str = "",
    more: bool = False,
) -> Glimpse:
    memory = None if options is None else SessionMemory(options)
    last = max((each.seq for each in places), default=0)
    holding = Holding(S, 1, last, memory, places, more=more)
    until = NOON + MINUTE if machine else None
    return Glimpse(holding, tuple(map(RunId, runs.split())), owner, machine, until)


def why(glimpse: Glimpse | None, here: int = 0, due_at: Instant | None = None) -> Why:
    places = () if glimpse is None else glimpse.holding.places
    asked = next((each.run for each in places if each.run.id == "x"), a_run("x", due_at=due_at))
    return SessionElsewhere(Settings(), glimpse, NOON).why(RunView(asked, State.QUEUED), here)


FIRST, BUSY = place("first", 1), running("busy", 1)
COLLECTS = Standing(2, collect=True, quiet_until=NOON + 1)
LATER = Standing(3, collect=True, quiet_until=NOON + 3)
WIDE = QueueOptions(max_concurrent=3)
ORPHAN = Place(a_run("x"), 1, 1, orphaned=True, started_at=NOON - SECOND, host="moon")

CASES: dict[str, tuple[Rule, Glimpse, Instant | None, str | None, str]] = {
    "not due": (
        Rule.NOT_DUE,
        seen(FIRST, place("x", 2, held(Rule.NOT_DUE), due_at=NOON + SECOND)),
        NOON + SECOND,
        None,
        "not due",
    ),
    "not due, and nobody has decided about it": (
        Rule.NOT_DUE,
        seen(place("x", 2, due_at=NOON + HOUR)),
        NOON + HOUR,
        None,
        "not due",
    ),
    "its window is open": (
        Rule.DEBOUNCE,
        seen(FIRST, place("x", 2, held(Rule.DEBOUNCE))),
        NOON + SECOND,
        None,
        "may follow",
    ),
    "a later message has extended its window": (
        Rule.DEBOUNCE,
        seen(
            place("x", 1, held(Rule.DEBOUNCE, NOON - 1, 1, 1)),
            place("y", 2, held(Rule.DEBOUNCE, NOON + 9, 2, 2)),
        ),
        NOON + 9,
        None,
        "may follow",
    ),
    "a retry": (
        Rule.RETRY,
        seen(place("x", 2, held(Rule.RETRY))),
        NOON + SECOND,
        None,
        "tried again",
    ),
    "a retry behind a retry": (
        Rule.SESSION_ORDER,
        seen(
            place("first", 1, held(Rule.RETRY, after=1)),
            place("x", 2, held(Rule.RETRY)),
            options=WIDE,
        ),
        None,
        "first",
        "comes first",
    ),
    "taken or offered to be steered": (
        Rule.STEERED,
        seen(BUSY, place("x", 2, held(Rule.STEERED)), runs="busy"),
        None,
        "busy",
        "taken over by",
    ),
    "behind what was steered": (
        Rule.SESSION_BUSY,
        seen(BUSY, place("s", 2, held(Rule.STEERED)), place("x", 3), runs="busy"),
        None,
        "busy",
        "busy with run busy",
    ),
    "its worker may live on": (
        Rule.ADOPTION,
        seen(ORPHAN, machine="moon"),
        NOON + MINUTE,
        None,
        "machine moon can go on with it until 1970",
    ),
    "behind a run whose worker may live on": (
        Rule.SESSION_ORDER,
        seen(
            Place(a_run("first"), 1, 1, orphaned=True, started_at=NOON, host="moon"),
            place("x", 2),
            machine="moon",
        ),
        None,
        "first",
        "comes first",
    ),
    "another one comes first": (
        Rule.SESSION_ORDER,
        seen(BUSY, place("first", 2), place("x", 3), runs="busy"),
        None,
        "first",
        "run first of",
    ),
    "one was put in front of it": (
        Rule.SESSION_ORDER,
        seen(place("x", 2), place("y", 3, Standing(-1))),
        None,
        "y",
        "run y of session s",
    ),
    "a heartbeat steps back": (
        Rule.SESSION_ORDER,
        seen(place("x", 1, source=Source.HEARTBEAT), place("first", 2)),
        None,
        "first",
        "comes first",
    ),
    "others still write": (
        Rule.COLLECTING,
        seen(place("x", 2, COLLECTS), place("y", 3, LATER)),
        NOON + 3,
        None,
        "quiet",
    ),
    "the session is busy": (
        Rule.SESSION_BUSY,
        seen(BUSY, place("x", 2), runs="busy", owner=7),
        None,
        "busy",
        "busy with run busy",
    ),
    "what runs wants the session alone": (
        Rule.SESSION_BUSY,
        seen(BUSY, place("x", 2, queue=WIDE), runs="busy"),
        None,
        "busy",
        "busy with run busy",
    ),
    "the session runs several at once": (
        Rule.ELSEWHERE,
        seen(BUSY, place("x", 2), runs="busy", options=WIDE, owner=7),
        None,
        None,
        "node 7",
    ),
    "its node has not started it": (
        Rule.ELSEWHERE,
        seen(place("x", 2), owner=7),
        None,
        None,
        "node 7 decides for",
    ),
    "nobody has taken it": (
        Rule.ELSEWHERE,
        seen(place("x", 2)),
        None,
        None,
        "no node that runs agent a has taken",
    ),
    "it has just ended": (Rule.ELSEWHERE, seen(owner=7), None, None, "node 7 decides"),
    "its window is over, and its node has yet to see it": (
        Rule.ELSEWHERE,
        seen(place("x", 2, held(Rule.DEBOUNCE, NOON - 1)), owner=7),
        None,
        None,
        "node 7",
    ),
    "it is due, and nobody there": (
        Rule.ELSEWHERE,
        seen(place("x", 2, held(Rule.NOT_DUE, NOON))),
        None,
        None,
        "no node",
    ),
    "so many are before it that it was not read": (
        Rule.SESSION_ORDER,
        seen(FIRST, place("second", 2), more=True),
        None,
        "first",
        "comes first",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_x1_the_rule_is_told_from_what_is_stored(case: str) -> None:
    rule, glimpse, until, by, says = CASES[case]
    told = why(glimpse)
    assert (told.rule, told.until, told.by) == (rule, until, by)
    assert (told.run_id, told.lane, told.agent, told.session) == ("x", "main", "a", "s")
    assert (told.node, told.place) == (glimpse.owner or None, None)
    assert told.machine == ("moon" if rule is Rule.ADOPTION else None)
    assert says in str(told)


def test_x1_a_run_far_behind_that_is_not_due_says_so() -> None:
    told = why(seen(FIRST, more=True), due_at=NOON + HOUR)
    assert (told.rule, told.until) == (Rule.NOT_DUE, NOON + HOUR)


def test_x1_a_run_of_which_nothing_is_known_is_elsewhere() -> None:
    assert why(None).rule is Rule.ELSEWHERE


def test_x1_a_node_never_names_itself_as_another_one() -> None:
    """It has the session, and the run came by another node just now."""
    told = why(seen(place("x", 2), owner=7), here=7)
    assert (told.rule, told.node) == (Rule.STARTING, None)


def test_x1_an_order_that_waits_is_not_carried_out_by_who_only_looks() -> None:
    glimpse = seen(place("x", 2), owner=7)
    view = RunView(a_run("x"), State.QUEUED)
    elsewhere = SessionElsewhere(Settings(), glimpse, NOON)
    assert [elsewhere.why(view) for _ in range(2)] == [why(glimpse)] * 2
