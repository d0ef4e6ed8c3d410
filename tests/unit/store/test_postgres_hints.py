"""Hints that go out with a commit, and what a node does with the number of a run that it was told (N-16, N-17)."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from headway.model.run import AgentName, LaneName, RunId
from headway.model.time import SECOND
from headway.ports import Elsewhere, Hint
from tests.postgres import PostgresServer, server_url, with_option
from tests.unit.store.test_postgres import AGENT, MAIN, Node, nodes, on_a_loop

POLL = 5 * SECOND
SEARCH, TAKE, ADMIT_ONE = "claim_v2", "take_v2", "admit_one_v1"


@contextmanager
def calls_of(node: Node, patch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Which of these calls a store makes, in their order."""
    made: list[str] = []
    connections = node.store._connections
    call = connections.call

    async def noted(statement: str, *values: object, within: float = 1.8) -> object:
        made.extend(name for name in (SEARCH, TAKE, ADMIT_ONE) if name in statement)
        return await call(statement, *values, within=within)

    with patch.context() as patched:
        patched.setattr(connections, "call", noted)
        yield made


async def told(node: Node, by: Node, name: str, session: str, **fields: object) -> None:
    """One node leaves a run in the store, and the other hears of it."""
    node.ear.hints.clear()
    assert await by.store.admit(by.run(name, session, **fields), claim=False) == Elsewhere(
        1, owned=False
    )
    await node.ear.until(Hint.WORK)


def sessions(claims: object) -> list[str]:
    return [holding.session for holding in claims.holdings]  # type: ignore[attr-defined]


def test_n17_a_session_of_which_a_node_was_told_is_taken_without_a_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @on_a_loop
    async def test() -> None:
        async with nodes("a", "b") as (a, b):
            await a.listens()
            await b.listens()
            assert sessions(await a.claim()) == []
            with calls_of(a, monkeypatch) as asked, calls_of(b, monkeypatch) as said:
                await told(a, b, "r", "s")
                claims = await a.claim()
            assert said == [ADMIT_ONE]
            assert asked == [TAKE]
            (holding,) = claims.holdings
            assert (holding.session, holding.seen, holding.more) == ("s", 1, False)
            assert [(place.run.id, place.seq, place.attempt) for place in holding.places] == [
                ("r", 1, 0)
            ]
            assert await b.store.admit(b.run("r-2", "s"), claim=False) == Elsewhere(2)

    test()


@on_a_loop
async def test_n8_of_two_nodes_that_were_told_one_has_the_session() -> None:
    async with nodes("a", "b", "c") as (a, b, c):
        for node in (a, b, c):
            await node.listens()
        await asyncio.gather(a.claim(), c.claim())
        for number in range(10):
            c.ear.hints.clear()
            await told(a, b, f"r{number}", f"s{number}")
            await c.ear.until(Hint.WORK)
            both = await asyncio.gather(a.claim(), c.claim())
            assert [*sessions(both[0]), *sessions(both[1])] == [f"s{number}"]


@on_a_loop
async def test_n8_all_that_came_in_the_session_meanwhile_is_taken_with_it() -> None:
    async with nodes("a", "b") as (a, b):
        await a.listens()
        await b.listens()
        await a.claim()
        await told(a, b, "r", "s")
        await b.store.admit(b.run("r-2", "s"), claim=False)
        (holding,) = (await a.claim()).holdings
        assert [place.run.id for place in holding.places] == ["r", "r-2"]
        assert holding.seen == 2


@on_a_loop
async def test_n17_what_a_node_left_in_the_store_itself_is_not_forgotten_for_what_it_is_told() -> (
    None
):
    async with nodes("a", "b") as (a, b):
        await a.listens()
        await b.listens()
        await a.claim()
        await a.store.admit(a.run("mine", "t"), claim=False)
        await told(a, b, "r", "s")
        assert sorted(sessions(await a.claim())) == ["s", "t"]


@on_a_loop
async def test_n16_a_lost_hint_delays_until_the_next_poll_whatever_else_is_told() -> None:
    async with nodes("a", "b", "c") as (a, b, c):
        for node in (a, b, c):
            await node.listens()
        searched_at = a.clock.now()
        await a.claim()
        c.store._hints.alone = True  # so that it tells nobody
        await c.store.admit(c.run("silent", "t"), claim=False)
        await told(a, b, "r", "s")
        claims = await a.claim()
        assert sessions(claims) == ["s"]
        assert claims.next_at is not None
        assert claims.next_at <= searched_at + POLL
        a.clock.advance(POLL)
        await told(a, b, "r-2", "u")
        assert sorted(sessions(await a.claim())) == ["t", "u"]


@on_a_loop
async def test_n17_what_is_for_others_is_left_and_what_comes_due_is_searched_for() -> None:
    async with nodes("a", "b") as (a, b):
        await a.listens()
        await b.listens()
        await a.claim()
        await told(a, b, "r", "s", agent=AgentName("other"))
        await told(a, b, "r-2", "t", lane=LaneName("other"))
        assert sessions(await a.claim()) == []
        due_at = a.clock.now() + 60 * SECOND
        await told(a, b, "r-3", "u", due_at=due_at)
        claims = await a.claim()
        assert (sessions(claims), claims.next_at) == ([], due_at)
        deadline_at = a.clock.now() + 30 * SECOND
        await told(a, b, "r-4", "v", lane=LaneName("other"), deadline_at=deadline_at)
        claims = await a.claim()
        assert (sessions(claims), claims.next_at) == ([], deadline_at)


@on_a_loop
async def test_n17_with_room_in_another_lane_or_for_another_agent_a_node_searches() -> None:
    other_lane, other_agent = LaneName("other"), AgentName("other")
    async with nodes("a", "b") as (a, b):
        await a.listens()
        await b.listens()
        await a.claim()
        await told(a, b, "r", "s", lane=other_lane)
        assert sessions(await a.claim()) == []
        await told(a, b, "r-2", "t")
        found = await a.store.claim({MAIN: 9, other_lane: 9}, [AGENT], a.clock.now())
        assert sorted(sessions(found)) == ["s", "t"]
        await told(a, b, "r-3", "u", agent=other_agent)
        assert sessions(await a.claim()) == []
        await told(a, b, "r-4", "v")
        found = await a.store.claim({MAIN: 9}, [AGENT, other_agent], a.clock.now())
        assert sorted(sessions(found)) == ["u", "v"]


@on_a_loop
async def test_n17_what_comes_due_is_not_forgotten_for_what_a_node_is_told() -> None:
    async with nodes("a", "b") as (a, b):
        await a.listens()
        await b.listens()
        await told(a, b, "r", "s", due_at=a.clock.now() + 3 * SECOND)
        assert sessions(await a.claim()) == []
        a.clock.advance(3 * SECOND)
        await told(a, b, "r-2", "t")
        assert sorted(sessions(await a.claim())) == ["s", "t"]


@on_a_loop
async def test_n16_few_hints_go_out_one_after_the_other_and_many_wait_for_each_other() -> None:
    async with nodes("a", "b") as (_, b):
        await b.listens()
        hints = b.store._hints
        sent = 0
        for _ in range(1_000):
            if hints.along() is not None:
                hints.went_along()
                sent += 1
        assert 5 <= sent <= 40


@on_a_loop
async def test_n16_what_is_no_number_is_a_plain_hint() -> None:
    async with nodes("a", "b") as (a, b):
        await a.listens()
        hints = a.store._hints
        assert hints.offered() is None
        for said in ("7", "8"):
            hints._heard(f"{b.number} work {said}")
        assert hints.offered() == [7, 8]
        assert hints.offered() == []
        for said in ("-1", "x", "9" * 30, "", "1 2"):
            hints._heard(f"{b.number} work {said}")
            assert hints.offered() is None
        for number in range(100):
            hints._heard(f"{b.number} work {number}")
        assert hints.offered() is None


def test_d1_what_was_acknowledged_survives_a_crash_of_the_server_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server_url()
    server = PostgresServer({"wal_writer_delay": "10s"})
    server.start()
    try:
        asyncio.run(_over_a_crash(server, monkeypatch))
    finally:
        server.remove()


async def _over_a_crash(server: PostgresServer, patch: pytest.MonkeyPatch) -> None:
    url = with_option(server.url, "schema", "one")
    async with nodes("a", "b", url=url) as (_, b):
        await b.listens()
        with calls_of(b, patch) as said:
            await b.store.admit(b.run("r", "s"), claim=False)
        assert said == [ADMIT_ONE]
        server.stop(signal.SIGQUIT)
    server.start()
    async with nodes("c", url=url) as (c,):
        view = await c.store.find(RunId("r"))
        assert view is not None
        assert sessions(await c.claim()) == ["s"]
