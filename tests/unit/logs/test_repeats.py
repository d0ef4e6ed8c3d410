"""No event floods (O-3): a condition that lasts is said on change, and again after a while."""

import pytest

from headway.logs.repeats import HOLD, Repeats, condition_of
from headway.model.events import (
    AttemptFailed,
    CallbackFailed,
    DeliveryFailed,
    Event,
    NodeDraining,
    NodeRestarted,
    ProviderHeld,
    StoreAway,
    StoreBack,
)
from headway.model.run import AgentName, RunId, SessionKey


def written(*events: Event) -> list[int | None]:
    repeats = Repeats()
    return [repeats.held_back(condition_of(event), event.at) for event in events]


def away(at: int, error: str = "gone") -> StoreAway:
    return StoreAway(at=at, error=error)


def test_o3_the_same_again_is_held_back_and_counted() -> None:
    assert written(away(0), away(1), away(2), away(HOLD), away(HOLD + 1)) == [
        0,
        None,
        None,
        2,
        None,
    ]


def test_o3_a_change_is_written_at_once() -> None:
    back = StoreBack(at=3)
    assert written(away(0), away(1), away(2, "refused"), back, away(4)) == [0, None, 1, 0, 0]


def test_o3_each_subject_counts_by_itself() -> None:
    first, second = (CallbackFailed(at=0, callback=name, error="x") for name in "ab")
    assert written(first, second, first, second) == [0, 0, None, None]


def test_o3_a_node_that_drains_says_so_once_but_again_after_a_restart() -> None:
    draining, restarted = NodeDraining(at=0, running=2), NodeRestarted(at=1, incarnation=2)
    assert written(draining, draining, restarted, draining) == [0, None, 1, 0]


def test_o3_a_dead_letter_is_news_each_time() -> None:
    def failed(again_at: int | None) -> DeliveryFailed:
        return DeliveryFailed(
            at=0,
            delivery="d",
            run_id=RunId("r"),
            session=SessionKey("s"),
            channel="c",
            error="e",
            again_at=again_at,
        )

    assert written(failed(5), failed(6), failed(None), failed(None)) == [0, None, 0, 0]


def test_o3_what_happens_to_a_run_is_never_held_back() -> None:
    event = AttemptFailed(
        at=0,
        run_id=RunId("r"),
        agent=AgentName("a"),
        session=SessionKey("s"),
        attempt=1,
        error="e",
        trace="",
    )
    assert written(event, event) == [0, 0]


@pytest.mark.parametrize("count", [5_000])
def test_o3_the_memory_of_it_is_bounded(count: int) -> None:
    repeats = Repeats()
    for number in range(count):
        repeats.held_back(condition_of(ProviderHeld(at=0, provider=str(number), until=1)), 0)
    assert len(repeats._said) == 1_000
