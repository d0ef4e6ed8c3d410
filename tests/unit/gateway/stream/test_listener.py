"""Listeners: each reads the journal at its own pace, and none costs memory."""

import asyncio

from headway.gateway.stream.journal import Journal, Start
from headway.gateway.stream.listener import Listener
from headway.model.events import EventsMissed
from headway.testing import virtual_time
from tests.unit.gateway.stream.happenings import BOOT, everything, journal, noted, started

PLENTY = 1_000_000


def listener(kept: Journal, after: str | None = None, backlog: int = 10) -> Listener:
    return Listener(kept, kept.start(after), backlog, everything)


def numbers(heard: Listener) -> list[int]:
    return [entry.number for entry in heard.take(PLENTY)]


def test_it_hears_all_from_its_start_on_once() -> None:
    kept = noted(3)
    heard = listener(kept, f"{BOOT}-1")
    assert numbers(heard) == [2, 3]
    assert numbers(heard) == []
    kept.note(started(4))
    assert numbers(heard) == [4]


def test_it_takes_about_as_much_as_it_is_asked_for() -> None:
    heard = listener(noted(10), f"{BOOT}-0")
    first = heard.take(1)
    assert [entry.number for entry in first] == [1]
    assert numbers(heard) == list(range(2, 11))


def test_what_it_does_not_want_moves_it_on_all_the_same() -> None:
    kept = journal()
    rare = Listener(kept, Start(1), 10, lambda event: getattr(event, "agent", None) == "rare")
    for number in range(1, 6):
        kept.note(started(number, agent="common"))
    assert rare.take(PLENTY) == []
    assert rare.seen == f"{BOOT}-5", "so that it does not ask for all of them again"


def test_who_falls_behind_is_noticed() -> None:
    kept = journal(1_000)
    slow = listener(kept, backlog=10)
    for number in range(10):
        kept.note(started(number))
    assert not slow.behind
    kept.note(started(11))
    assert slow.behind


def test_what_was_there_before_it_came_is_no_backlog() -> None:
    kept = noted(100, memory=1_000)
    back = listener(kept, f"{BOOT}-0", backlog=10)
    assert not back.behind
    for number in range(11):
        kept.note(started(number))
    assert back.behind, "but what came since is"


def test_who_is_overtaken_by_forgetting_is_behind() -> None:
    kept = noted(4, memory=4)
    slow = listener(kept, f"{BOOT}-0", backlog=1_000)
    assert not slow.behind
    kept.note(started(5))
    assert slow.behind


def test_a_gap_comes_first() -> None:
    kept = noted(10, memory=4)
    back = listener(kept, f"{BOOT}-2")
    assert back.seen == f"{BOOT}-2", (
        "who is cut off before it was told of the gap comes back with this"
    )
    gap, *rest = back.take(PLENTY)
    assert isinstance(gap.event, EventsMissed)
    assert [entry.number for entry in rest] == [7, 8, 9, 10]
    assert back.seen == f"{BOOT}-10"


def test_a_gap_comes_first_also_for_who_is_bound_to_another_agent() -> None:
    kept = noted(10, memory=4)
    back = Listener(kept, kept.start("earlier-5"), 10, lambda _: False)
    assert [type(entry.event) for entry in back.take(PLENTY)] == [EventsMissed]


@virtual_time
async def test_it_wakes_when_something_happens_and_when_the_node_ends() -> None:
    kept = journal()
    heard = listener(kept)
    waiting = asyncio.get_running_loop().create_task(heard.more())
    await asyncio.sleep(1)
    assert not waiting.done()
    kept.note(started(1))
    await waiting
    assert numbers(heard) == [1]
    assert not heard.over
    waiting = asyncio.get_running_loop().create_task(heard.more())
    await asyncio.sleep(1)
    kept.close()
    await waiting
    assert heard.over


@virtual_time
async def test_one_that_is_cancelled_while_it_waits_disturbs_no_other() -> None:
    kept = journal()
    loop = asyncio.get_running_loop()
    first, second = (loop.create_task(listener(kept).more()) for _ in range(2))
    await asyncio.sleep(1)
    first.cancel()
    await asyncio.sleep(1)
    assert not second.done()
    kept.note(started(1))
    await second
