"""What a store must do that several nodes share: the rules for many nodes, each named by its number (`N-9`).

Each test starts nodes on one database and lets them meet. Races are run many times over: a rule that a store
keeps only mostly shows as a red test sooner or later, and one that it keeps never does.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import TypedDict

import pytest

from headway import Outcome, Reply, Route, State
from headway.core.actions import (
    Action,
    CancelAttempt,
    Deliver,
    Enqueue,
    Merge,
    Release,
    Remember,
    Respond,
    Steer,
)
from headway.core.merge import merged
from headway.model.errors import StoreUnavailable
from headway.model.places import Answer, Cancel, Configure, Order, Place, Standing, Stop, StopAll
from headway.model.run import (
    AgentName,
    LaneName,
    QueueOptions,
    Run,
    RunId,
    SessionKey,
    SessionMemory,
)
from headway.model.settings import Limits
from headway.model.time import DAY, MINUTE, SECOND
from headway.model.words import Cut, Reason, Rule, Source
from headway.ports import (
    Duplicate,
    Elsewhere,
    Granted,
    Hint,
    Recorded,
    RunQuery,
    TurnedAway,
)
from tests.contract.cluster import Cluster, Node, over_the_nodes
from tests.contract.world import CHAT, DONE, MAIN, STOPPED, Suite, ask, view_of

CRON = LaneName("cron")
ROUNDS = 12
"""How often a race is run."""
MEMORY = SessionMemory(options=QueueOptions(cap=3))


class Family(TypedDict):
    """What makes a run the child of another."""

    source: Source
    parent: RunId
    ancestors: tuple[RunId, ...]
    root: SessionKey


class Sameness(TypedDict, total=False):
    """What makes two submissions the same."""

    idempotency_key: str
    message_id: str
    route: Route


class SharedStoreContract(Suite):
    """Derive from it, name the class `Test…`, and say how to make the stores of one database."""

    # Nodes and leases.

    @over_the_nodes
    async def test_n1_each_incarnation_has_its_own_number_and_owns_nothing(
        self, cluster: Cluster
    ) -> None:
        a = await cluster.node("a")
        run = await a.admit()
        b, again = await cluster.node("b"), await cluster.node("a again")
        assert len({a.node, b.node, again.node}) == 3
        assert (await b.view(again)).sessions == 0
        assert (await b.view(a)).sessions == 1
        assert (await again.send())[1] == Elsewhere(2, owned=True)
        assert (await view_of(again.store, run)).state is State.QUEUED

    @over_the_nodes
    async def test_n2_a_renewal_is_seen_by_the_others(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        before = await a.sees(b)
        assert before.lease == self.settings.lease
        assert before == await a.sees(b), "only its own renewal moves a counter"
        await b.renew()
        assert (await a.sees(b)).counter > before.counter

    @over_the_nodes
    async def test_n3_no_clock_ends_a_lease(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        run = await a.admit()
        cluster.clock.advance(DAY)
        assert (await a.renew()).alive
        assert [peer.id for peer in (await b.renew()).peers] == [a.node]
        assert await b.claim_all() == {}
        await a.record(a.start(run))

    @over_the_nodes
    async def test_n4_a_node_whose_counter_moved_is_not_buried(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        run = await a.admit()
        await a.record(a.start(run))
        peer = await b.sees(a)
        await a.renew()
        assert not await b.store.bury(peer)
        assert (await a.renew()).alive
        assert await b.claim_all() == {}
        assert (await view_of(b.store, run)).state is State.RUNNING
        await a.record(a.finish(run))

    @over_the_nodes
    async def test_n4_a_buried_node_learns_that_it_is_dead(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        await b.bury(a)
        for _ in range(2):
            assert not (await a.renew()).alive
        assert (await b.renew()).peers == ()
        assert (await b.view(a)).ended == "dead"

    @over_the_nodes
    async def test_n4_of_renewal_and_takeover_just_one_wins(self, cluster: Cluster) -> None:
        b = await cluster.node("b")
        for number in range(ROUNDS):
            a = await cluster.node(f"a{number}")
            peer = await b.sees(a)
            renewal, buried = await asyncio.gather(a.renew(), b.store.bury(peer))
            assert renewal.alive is not buried
            if not buried:
                await a.store.retire()

    @over_the_nodes
    async def test_n4_a_second_takeover_takes_nothing_from_the_first(
        self, cluster: Cluster
    ) -> None:
        a, b = await cluster.pair()
        c = await cluster.node("c")
        runs = [await a.admit(f"s{number}") for number in range(5)]
        peer_b, peer_c = await b.sees(a), await c.sees(a)
        assert any(await asyncio.gather(b.store.bury(peer_b), c.store.bury(peer_c)))
        holdings = await b.claim_all()
        assert len(holdings) == 5
        await c.store.bury(peer_c)
        assert await c.claim_all() == {}
        for run in runs:
            b.take(holdings[run.session])
            await b.record(b.start(run))

    @over_the_nodes
    async def test_n4_a_dead_node_takes_nothing_more(self, cluster: Cluster) -> None:
        """What it took would never be freed: nobody buries it a second time."""
        a, b = await cluster.pair()
        left = await b.leave("left")
        await b.bury(a)
        run, answer = await self._unless_refused(a)
        assert not isinstance(answer, Granted)
        assert await a.claim_all() == {}
        assert await a.store.hold_slots(MAIN, 5, 5) == 0
        try:
            ordered = await a.try_order("o-1", StopAll(), "t")
        except StoreUnavailable:
            ordered = None
        assert not isinstance(ordered, Granted)
        assert (await b.view(a)).sessions == 0
        assert await b.store.hold_slots(MAIN, 5, 5) == 5
        claimed = {
            place.run for holding in (await b.claim_all()).values() for place in holding.places
        }
        assert left in claimed
        assert isinstance(answer, StoreUnavailable) or run in claimed

    async def _unless_refused(self, node: Node) -> tuple[Run, object]:
        run = node.run()
        try:
            return run, await ask(node.store, run)
        except StoreUnavailable as error:
            return run, error

    @over_the_nodes
    async def test_n4_nothing_stays_with_a_node_that_dies_while_it_takes(
        self, cluster: Cluster
    ) -> None:
        b = await cluster.node("b")
        for number in range(ROUNDS):
            a = await cluster.node(f"a{number}")
            for place in range(3):
                await b.leave(f"{number}-left-{place}")
            peer = await b.sees(a)
            runs = [a.run(f"{number}-{place}") for place in range(5)]
            *answers, buried, claims = await asyncio.gather(
                *(ask(a.store, run) for run in runs),
                b.store.bury(peer),
                a.store.claim({MAIN: 10}, [AgentName("a")], cluster.clock.now()),
                return_exceptions=True,
            )
            assert buried is True
            assert not isinstance(claims, BaseException)
            assert (await b.view(a)).sessions == 0
            known = {
                run
                for run, answer in zip(runs, answers, strict=True)
                if not isinstance(answer, BaseException)
            }
            claimed = await b.claim_all()
            found = {place.run for holding in claimed.values() for place in holding.places}
            assert known <= found
            assert len(found - known) >= 3

    @over_the_nodes
    async def test_n5_epochs_grow_over_all_nodes_though_sessions_are_forgotten(
        self, cluster: Cluster
    ) -> None:
        nodes = [*await cluster.pair(), await cluster.node("c")]
        epochs = []
        for number in range(9):
            node = nodes[number % 3]
            run = await node.admit()
            epochs.append(node.granted(run).epoch)
            await node.carry_through(run)
            await node.record(node.release(run))
        assert epochs == sorted(set(epochs))

    @over_the_nodes
    async def test_n5_a_takeover_is_a_new_epoch(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        run = await a.admit()
        await b.bury(a)
        holding = await b.take_over()
        assert holding.epoch > a.granted(run).epoch
        await b.record(b.release(run))
        c = await cluster.node("c")
        assert (await c.take_over()).epoch > holding.epoch

    # Sessions: insert, claim, release.

    @over_the_nodes
    async def test_n6_a_run_for_anothers_session_is_told_to_its_owner(
        self, cluster: Cluster
    ) -> None:
        a, b = await cluster.pair()
        first = await a.admit()
        second, answer = await b.send()
        assert answer == Elsewhere(2, owned=True)
        await a.heard(Hint.NEWS)
        holding = await a.news("s", 1)
        assert (holding.epoch, holding.seen) == (a.granted(first).epoch, 2)
        assert holding.places == (Place(second, 2),)
        assert list(await b.store.news({SessionKey("s"): 0})) == [], "it is not b's"

    @over_the_nodes
    async def test_n6_of_runs_from_many_nodes_at_once_none_is_hidden(
        self, cluster: Cluster
    ) -> None:
        nodes = [*await cluster.pair(), await cluster.node("c")]
        first = await nodes[0].admit()
        sent = await asyncio.gather(*(nodes[n % 3].send() for n in range(60)))
        numbers = [answer.seq for _, answer in sent if isinstance(answer, Granted | Elsewhere)]
        assert sorted(numbers) == list(range(2, 62))
        holding = await nodes[0].news(first.session, 1)
        assert {place.run: place.seq for place in holding.places} == {
            run: answer.seq for run, answer in sent if isinstance(answer, Granted | Elsewhere)
        }
        assert [place.seq for place in holding.places] == list(range(2, 62))

    @over_the_nodes
    async def test_n6_one_nodes_runs_keep_their_order(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        await a.admit()
        sent = await asyncio.gather(*(b.send() for _ in range(30)))
        holding = await a.news("s", 1)
        assert [place.run for place in holding.places] == [run for run, _ in sent]

    @over_the_nodes
    async def test_n7_a_session_is_not_released_over_anothers_run(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        first = await a.admit()
        await a.carry_through(first)
        second, _ = await b.send()
        recorded = await a.store.record([a.release(first)])
        assert recorded == Recorded(kept=(first.session,))
        assert (await a.news("s", 1)).places == (Place(second, 2),)
        assert await b.claim_all() == {}

    @over_the_nodes
    async def test_n7_of_release_and_insert_one_comes_first(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        for number in range(ROUNDS):
            name = f"s{number}"
            first = await a.admit(name)
            await a.carry_through(first)
            recorded, (second, answer) = await asyncio.gather(
                a.store.record([a.release(first)]), b.send(name)
            )
            if recorded.kept:
                assert answer == Elsewhere(2, owned=True)
                assert (await a.news(name, 1)).places == (Place(second, 2),)
            else:
                assert isinstance(answer, Granted)
                assert answer.epoch > a.granted(first).epoch
                await b.record(b.start(second))

    @over_the_nodes
    async def test_n7_news_come_by_looking_too(self, cluster: Cluster) -> None:
        """A lost hint delays, it never hides."""
        a, b = await cluster.pair()
        await a.admit("s")
        await a.admit("t")
        for name in ("s", "t", "s"):
            await b.send(name)
        seen: Mapping[SessionKey, int] = {SessionKey("s"): 1, SessionKey("t"): 2}
        (holding,) = await a.store.news(seen)
        assert (holding.session, holding.seen, len(holding.places)) == ("s", 3, 2)

    @over_the_nodes
    async def test_n8_of_two_claims_each_session_goes_to_one(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        guest = await cluster.guest()
        for number in range(40):
            await guest.send(f"s{number}", claim=False)
        taken: list[SessionKey] = []
        while len(taken) < 40:
            claims = await asyncio.gather(
                *(
                    node.store.claim({MAIN: 5}, [AgentName("a")], cluster.clock.now())
                    for node in (a, b, a, b)
                )
            )
            found = [holding for claim in claims for holding in claim.holdings]
            assert found, "skipping what is locked must not hide what is free"
            taken += [holding.session for holding in found]
        assert len(set(taken)) == 40
        assert (await a.view(a)).sessions + (await a.view(b)).sessions == 40

    @over_the_nodes
    async def test_n8_a_claim_and_its_news_have_all_that_comes_meanwhile(
        self, cluster: Cluster
    ) -> None:
        a, b = await cluster.pair()
        for number in range(ROUNDS):
            name = f"s{number}"
            first = await b.leave(name)
            sent, claims = await asyncio.gather(
                asyncio.gather(*(b.send(name) for _ in range(5))),
                a.store.claim({MAIN: 1}, [AgentName("a")], cluster.clock.now()),
            )
            (holding,) = claims.holdings
            places = list(holding.places)
            for news in await a.store.news({holding.session: holding.seen}):
                places += news.places
            assert [place.run for place in places] == [first, *(run for run, _ in sent)]
            assert [place.seq for place in places] == [1, 2, 3, 4, 5, 6]

    @over_the_nodes
    async def test_n8_what_ended_before_the_claim_does_not_come_back(
        self, cluster: Cluster
    ) -> None:
        a, b = await cluster.pair()
        for number in range(ROUNDS):
            name = f"s{number}"
            first, second = await a.admit(name), await a.admit(name)
            await a.record(a.start(first))
            ends_and_leaves: list[Action] = [a.finish(first), a.release(second)]
            recorded, claims = await asyncio.gather(
                a.store.record(ends_and_leaves),
                b.store.claim({MAIN: 1}, [AgentName("a")], cluster.clock.now()),
            )
            assert recorded == Recorded()
            holdings = claims.holdings or tuple((await b.claim_all()).values())
            assert [holding.places for holding in holdings] == [(Place(second, 2),)]

    # An old owner's late writes (N-9).

    @pytest.mark.parametrize(
        "kind",
        [
            "start",
            "finish",
            "enqueue",
            "merge",
            "cancel",
            "steer",
            "remember",
            "respond",
            "deliver",
            "release",
        ],
    )
    def test_n9_a_zombies_write_changes_nothing(self, kind: str) -> None:
        @over_the_nodes
        async def main(self: SharedStoreContract, cluster: Cluster) -> None:
            a, b = await cluster.pair()
            first, second, third = [await a.admit(text=text) for text in ("1", "2", "3")]
            start = a.start(first)
            await a.record(start)
            granted = await a.order(Configure())
            action = _zombie_actions(a, (first, second, third), start.ticket, granted)[kind]()
            await b.bury(a)
            lost = Recorded(lost=((first.session, granted.epoch),))
            before = await _everything(b)
            assert await a.store.record([action]) == lost
            assert await _everything(b) == before
            holding = await b.take_over()
            assert [place.run for place in holding.places] == [first, second, third]
            assert [place.orphaned for place in holding.places] == [True, False, False]
            assert [place.standing for place in holding.places] == [None] * 3
            assert [order.id for order in holding.orders] == ["o-1"]
            before = await _everything(b)
            assert await a.store.record([action]) == lost
            assert await _everything(b) == before
            await b.record(b.start(first, attempt=2), b.finish(first, attempt=2))
            assert (await view_of(a.store, first)).attempt == 2

        main(self)

    @over_the_nodes
    async def test_n9_of_a_zombies_batch_nothing_is_kept(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        runs = [await a.admit(f"s{number}") for number in range(5)]
        await a.record(*(a.start(run) for run in runs))
        await b.bury(a)
        ends: list[Action] = []
        for run in runs:
            ends += [a.finish(run), a.release(run)]
        lost = await a.store.record(ends)
        assert set(lost.lost) == {(run.session, a.granted(run).epoch) for run in runs}
        assert len(lost.lost) == 5, "each session is told once"
        assert lost.kept == ()
        for run in runs:
            assert (await view_of(b.store, run)).state is State.QUEUED

    @over_the_nodes
    async def test_n9_a_lost_session_does_not_hurt_the_others_of_its_batch(
        self, cluster: Cluster
    ) -> None:
        a, b = await cluster.pair()
        gone, mine = await a.admit("gone"), await a.admit("mine")
        old = a.granted(gone)
        await a.record(a.release(gone))
        await b.take_over("gone")
        recorded = await a.store.record([a.start(gone), a.start(mine), a.finish(mine)])
        assert recorded == Recorded(lost=((gone.session, old.epoch),))
        assert (await view_of(b.store, gone)).state is State.QUEUED
        assert (await view_of(b.store, mine)).state is State.DONE

    @over_the_nodes
    async def test_n9_a_takeover_fences_what_is_under_way(self, cluster: Cluster) -> None:
        """Either the old owner's outcome was stored before the takeover, or its run is tried again."""
        b = await cluster.node("b")
        for number in range(ROUNDS):
            a = await cluster.node(f"a{number}")
            run = await a.admit(f"s{number}")
            await a.record(a.start(run))
            peer = await b.sees(a)
            recorded, buried = await asyncio.gather(
                a.store.record([a.finish(run)]), b.store.bury(peer)
            )
            assert buried
            holdings = await b.claim_all()
            if recorded.lost:
                assert [place.orphaned for place in holdings[run.session].places] == [True]
                assert (await view_of(b.store, run)).outcome is None
            else:
                assert holdings == {}
                assert (await view_of(b.store, run)).outcome == DONE

    # What a successor is given (N-12).

    @over_the_nodes
    async def test_n12_a_successor_knows_what_the_owner_decided(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        first, second = await a.admit(route=CHAT), await a.admit(route=CHAT)
        third, _ = await b.send(route=CHAT)
        epoch = a.granted(first).epoch
        began_at = cluster.clock.advance(SECOND)
        start = a.start(first)
        stands = Standing(after=3, quiet_until=9, collect=True)
        await a.record(
            start,
            Enqueue(second, State.QUEUED, 0, epoch, standing=stands),
            Remember(first.session, MEMORY, epoch),
        )
        await a.record(Steer(third, start.ticket, epoch))
        cluster.clock.advance(SECOND)
        await b.bury(a)
        holding = await b.take_over()
        assert holding.memory == MEMORY
        assert holding.places == (
            Place(first, 1, attempt=1, orphaned=True, started_at=began_at),
            Place(second, 2, standing=stands),
            Place(third, 3, standing=Standing(after=3)),
        )

    @over_the_nodes
    async def test_n12_a_steer_does_not_move_what_has_its_place(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        first, second = await a.admit(), await a.admit()
        epoch = a.granted(first).epoch
        stands = Standing(after=7, begun=True)
        start = a.start(first)
        await a.record(
            start,
            Enqueue(second, State.QUEUED, 0, epoch, standing=stands),
            Steer(second, start.ticket, epoch),
        )
        await b.bury(a)
        assert [place.standing for place in (await b.take_over()).places] == [None, stands]

    @over_the_nodes
    async def test_d7_retired_is_like_dead_but_said_so(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        waits, runs = await a.admit("waits"), await a.admit("runs")
        await a.record(a.start(runs))
        idle = await a.admit("idle")
        await a.carry_through(idle)
        await a.record(Remember(idle.session, MEMORY, a.granted(idle).epoch))
        b.hints.clear()
        await a.store.retire()
        await b.heard(Hint.WORK)
        assert (await b.view(a)).ended == "retired"
        assert (await b.renew()).peers == ()
        holdings = await b.claim_all()
        assert holdings[waits.session].places == (Place(waits, 1),)
        assert [place.orphaned for place in holdings[runs.session].places] == [True]
        assert len(holdings) == 2
        assert (await b.send("idle"))[1] == Granted(_any(), _any(), MEMORY, fresh=True)

    @over_the_nodes
    async def test_d7_a_death_is_told_and_its_work_is_ready_at_once(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        c = await cluster.node("c")
        run = await a.admit()
        await a.record(a.start(run))
        c.hints.clear()
        await b.bury(a)
        await c.heard(Hint.WORK)
        assert [place.run for place in (await c.take_over()).places] == [run]

    @over_the_nodes
    async def test_s4_a_dead_nodes_idle_sessions_leave_nothing_behind(
        self, cluster: Cluster
    ) -> None:
        a, b = await cluster.pair()
        for number in range(5):
            await a.carry_through(await a.admit(f"s{number}"))
        await b.bury(a)
        assert await b.claim_all() == {}
        run, answer = await b.send("s0")
        assert isinstance(answer, Granted)
        assert answer.seq == 1
        assert (await view_of(b.store, run)).state is State.QUEUED

    # Orders (N-13).

    @over_the_nodes
    async def test_n13_an_order_reaches_the_owner_and_its_answer_the_asker(
        self, cluster: Cluster
    ) -> None:
        a, b = await cluster.pair()
        run = await a.admit()
        await a.record(a.start(run))
        assert await b.try_order("o-1", Stop()) == Elsewhere(2, owned=True)
        await a.heard(Hint.NEWS)
        holding = await a.news("s", 1)
        order = Order("o-1", run.session, Stop(), 2)
        assert (holding.places, holding.orders, holding.seen) == ((), (order,), 2)
        assert await b.store.answers(["o-1"]) == {}
        await a.record(Respond(order, Answer(running=1), holding.epoch))
        await b.heard(Hint.ENDED)
        assert await b.store.answers(["o-1"]) == {"o-1": Answer(running=1)}
        assert list(await a.store.news({run.session: 2})) == []

    @over_the_nodes
    async def test_n13_an_order_survives_its_sessions_owner(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        run = await a.admit()
        answered, open_ = Order("o-1", run.session, Stop(), 2), Order("o-2", run.session, Stop(), 3)
        for order in (answered, open_):
            await b.try_order(order.id, Stop())
        await a.record(Respond(answered, Answer(), a.granted(run).epoch))
        await b.bury(a)
        holding = await b.take_over()
        assert holding.orders == (open_,)
        await b.record(Respond(open_, Answer(waiting=1), holding.epoch))
        assert await b.store.answers(["o-1", "o-2"]) == {
            "o-1": Answer(),
            "o-2": Answer(waiting=1),
        }

    @over_the_nodes
    async def test_n13_an_order_to_a_session_that_nobody_has_is_claimed_without_room(
        self, cluster: Cluster
    ) -> None:
        a, b = await cluster.pair()
        due_at = cluster.clock.now() + DAY
        run = await a.leave(due_at=due_at)
        a.hints.clear()
        assert await b.try_order("o-1", StopAll()) == Elsewhere(2, owned=False)
        await a.heard(Hint.WORK)
        claims = await a.store.claim({}, [AgentName("a")], cluster.clock.now())
        (holding,) = claims.holdings
        assert holding.orders == (Order("o-1", run.session, StopAll(), 2),)
        assert [place.run for place in holding.places] == [run]

    # Looking into a session.

    @over_the_nodes
    async def test_x1_anybody_sees_what_is_in_a_session_and_who_decides(
        self, cluster: Cluster
    ) -> None:
        a, b = await cluster.pair()
        first, second = await a.admit(), await a.admit()
        standing = Standing(1, turn=3, held=Rule.RETRY, until=a.clock.now() + 5)
        await a.record(
            a.start(first),
            Enqueue(second, State.PENDING, 1, a.granted(second).epoch, standing=standing),
            Remember(first.session, MEMORY, a.granted(first).epoch),
        )
        glimpse = await b.store.glimpse(first.session)
        assert glimpse is not None
        places = glimpse.holding.places
        assert [place.run for place in places] == [first, second]
        assert places[1].standing == standing
        assert glimpse.running == (first.id,)
        assert (glimpse.holding.memory, glimpse.owner) == (MEMORY, a.node)
        assert (glimpse.reserved_for, glimpse.reserved_until) == ("", None)
        views = [await view_of(b.store, run) for run in (first, second)]
        assert [view.node for view in views] == [a.node, 0]
        assert (await a.news("s", 0)).places != (), "it is still a's"
        await a.store.retire()
        left = await b.store.glimpse(first.session)
        assert left is not None
        assert (left.owner, left.running, len(left.holding.places)) == (0, (), 2)
        assert await b.store.glimpse(SessionKey("nobody's")) is None

    @over_the_nodes
    async def test_n13_an_order_may_take_an_idle_session(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        key = SessionKey("s")
        granted = await b.try_order("o-1", Configure(QueueOptions(cap=3)))
        assert isinstance(granted, Granted)
        order = Order("o-1", key, Configure(QueueOptions(cap=3)), granted.seq)
        await b.record(
            Remember(key, MEMORY, granted.epoch),
            Respond(order, Answer(), granted.epoch),
            Release(key, granted.epoch, granted.seq),
        )
        assert await a.store.memory_of(key) == MEMORY
        assert (await a.send())[1] == Granted(_any(), _any(), MEMORY, fresh=True)

    @over_the_nodes
    async def test_n13_an_order_without_an_answer_keeps_its_session(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        run = await a.admit()
        await a.carry_through(run)
        order = await b.try_order("o-1", StopAll())
        assert order == Elsewhere(2, owned=True)
        assert await a.store.record([a.release(run)]) == Recorded(kept=(run.session,))
        await b.bury(a)
        claims = await b.store.claim({}, [AgentName("a")], cluster.clock.now())
        assert [holding.orders[0].id for holding in claims.holdings] == ["o-1"]

    # Stops reach what a run started (N-14, X-3).

    @over_the_nodes
    async def test_n14_a_stop_is_an_order_to_each_descendant(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        root, family = await self._family(a)
        child = await b.admit("child", **family)
        below = _below(child)
        grandchild = await b.leave("grandchild", **below)
        ended = await b.admit("ended", **family)
        await b.carry_through(ended)
        stranger = await b.admit("stranger")
        b.hints.clear()
        await a.record(CancelAttempt(root, 1, Cut.STOPPED, a.granted(root).epoch))
        await b.heard(Hint.NEWS)
        holding = await b.news("child", 1)
        assert [order.command for order in holding.orders] == [Cancel(child.id)]
        claims = await b.store.claim({}, [AgentName("a")], cluster.clock.now())
        (holding,) = claims.holdings
        assert [place.run for place in holding.places] == [grandchild]
        assert [order.command for order in holding.orders] == [Cancel(grandchild.id)]
        assert list(await b.store.news({ended.session: 1, stranger.session: 1})) == []

    @over_the_nodes
    async def test_n14_a_stopped_run_can_start_nothing_more(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        root, family = await self._family(a)
        child = await b.admit("child", **family)
        await a.record(CancelAttempt(root, 1, Cut.STOPPED, a.granted(root).epoch))
        below = _below(child)
        for node, fields in ((b, family), (a, family), (b, below)):
            late, answer = await node.send("late", **fields)
            assert answer == TurnedAway(STOPPED)
            view = await view_of(a.store, late)
            assert (view.state, view.outcome) == (State.CANCELLED, STOPPED)
        await a.record(a.finish(root, STOPPED))
        assert (await b.send("late", **family))[1] == TurnedAway(STOPPED)

    @over_the_nodes
    async def test_n14_a_run_that_has_ended_can_start_nothing_more(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        root, family = await self._family(a)
        await a.record(a.finish(root))
        assert (await b.send("late", **family))[1] == TurnedAway(STOPPED)
        assert (await view_of(a.store, root)).outcome == DONE

    @over_the_nodes
    async def test_n14_what_an_attempt_had_started_ends_with_it_whatever_cut_it(
        self, cluster: Cluster
    ) -> None:
        a, b = await cluster.pair()
        root, family = await self._family(a)
        child = await b.admit("child", **family)
        epoch = a.granted(root).epoch
        await a.record(CancelAttempt(root, 1, Cut.PREEMPTED, epoch))
        (news,) = await b.store.news({child.session: 1})
        assert [order.command for order in news.orders] == [Cancel(child.id)]
        assert isinstance((await b.send("other", **family))[1], Granted)

    @over_the_nodes
    async def test_n14_no_child_slips_through(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        for number in range(ROUNDS):
            root, family = await self._family(a, f"root-{number}")
            name = f"child-{number}"
            cut = CancelAttempt(root, number, Cut.STOPPED, a.granted(root).epoch)
            recorded, (child, answer) = await asyncio.gather(
                a.store.record([cut]), b.send(name, **family)
            )
            assert recorded == Recorded()
            if isinstance(answer, TurnedAway):
                assert (await view_of(b.store, child)).outcome == STOPPED
            else:
                holding = await b.news(name, 1)
                assert [order.command for order in holding.orders] == [Cancel(child.id)]

    @over_the_nodes
    async def test_n14_an_unknown_or_forgotten_ancestor_starts_nothing(
        self, cluster: Cluster
    ) -> None:
        a = await cluster.node("a")
        assert (await a.send("child", **_below(a.run("x"))))[1] == TurnedAway(STOPPED)

    @over_the_nodes
    async def test_n14_what_an_ancestor_answered_may_hold_anything(self, cluster: Cluster) -> None:
        """One whose words no database can look into, as a command writes them, is no hindrance."""
        a, b = await cluster.pair()
        root, family = await self._family(a)
        child = await b.admit("child", **family)
        await b.record(b.start(child))
        await a.record(a.finish(root, Outcome(State.DONE, reply=Reply("a\0b"))))
        assert isinstance((await b.send("grandchild", **_below(child)))[1], Granted)

    async def _family(self, node: Node, session: str = "root") -> tuple[Run, Family]:
        """A running run, and what makes a run its child."""
        root = await node.admit(session)
        await node.record(node.start(root))
        return root, _below(root)

    # Keys and batches (N-15).

    @pytest.mark.parametrize(
        "fields", [{"idempotency_key": "k"}, {"message_id": "7", "route": CHAT}]
    )
    def test_n15_over_all_nodes_one_of_the_same_is_taken(self, fields: Sameness) -> None:
        @over_the_nodes
        async def main(self: SharedStoreContract, cluster: Cluster) -> None:
            a, b = await cluster.pair()
            sent = await asyncio.gather(
                *(node.send(f"s{number}", **fields) for number in range(10) for node in (a, b))
            )
            taken = [run for run, answer in sent if not isinstance(answer, Duplicate)]
            assert len(taken) == 1
            found = {answer.run_id for _, answer in sent if isinstance(answer, Duplicate)}
            assert found == {taken[0].id}
            assert [view.run for view in (await a.store.list(RunQuery())).runs] == taken

        main(self)

    @over_the_nodes
    async def test_d6_a_key_that_failed_is_retried_by_one_node_only(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        first = await a.admit(idempotency_key="k")
        await a.carry_through(first, Outcome(State.FAILED, Reason.ERROR))
        sent = await asyncio.gather(
            *(
                node.send(f"s{number}", retry=True, idempotency_key="k")
                for number in range(5)
                for node in (a, b)
            )
        )
        taken = [run for run, answer in sent if not isinstance(answer, Duplicate)]
        assert len(taken) == 1
        again = (await b.send("t", idempotency_key="k"))[1]
        assert again == Duplicate(taken[0].id)

    @over_the_nodes
    async def test_n15_crossing_batches_do_not_block_each_other(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        names = [f"s{number:02}" for number in range(20)]
        runs = [await (a, b)[number % 2].admit(name) for number, name in enumerate(names)]
        for _ in range(3):
            remembered: list[Coroutine[object, object, Recorded]] = []
            for node, first in ((a, 0), (b, 1)):
                keeps: list[Action] = [
                    Remember(run.session, MEMORY, node.granted(run).epoch) for run in runs[first::2]
                ]
                remembered += [node.store.record(keeps), node.store.record(keeps[::-1])]
            *recorded, sent = await asyncio.gather(
                *remembered,
                asyncio.gather(
                    *(a.send(name) for name in names), *(b.send(name) for name in names[::-1])
                ),
            )
            assert recorded == [Recorded()] * 4
            assert isinstance(sent, list)
            assert len(sent) == 40
        for run in runs:
            assert await b.store.memory_of(run.session) == MEMORY

    @over_the_nodes
    async def test_n15_a_repeated_admission_answers_as_things_are(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        await a.admit()
        run = b.run(idempotency_key="k")
        assert await ask(b.store, run) == Elsewhere(2, owned=True)
        assert await ask(b.store, run) == Elsewhere(2, owned=True)
        assert len((await a.news("s", 1)).places) == 1

    # Hints (N-16).

    @over_the_nodes
    async def test_n16_work_that_nobody_has_is_told(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        run = await a.leave()
        await b.heard(Hint.WORK)
        await b.take_over()
        b.hints.clear()
        a.hints.clear()
        await b.record(b.release(run))
        await a.heard(Hint.WORK)
        assert [place.run for place in (await a.take_over()).places] == [run]

    @over_the_nodes
    async def test_n16_an_outcome_is_told_to_who_asked(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        await a.admit()
        run, _ = await b.send()
        a.take(await a.news("s", 1))
        b.hints.clear()
        await a.carry_through(run)
        await b.heard(Hint.ENDED)
        assert await b.store.outcomes([run.id]) == {run.id: DONE}

    @over_the_nodes
    async def test_n16_also_what_became_of_a_merged_message(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        await a.admit()
        parts = [(await b.send(text=text))[0] for text in ("one", "two")]
        a.take(await a.news("s", 1))
        b.hints.clear()
        whole = await a.merge(parts)
        await b.heard(Hint.ENDED)
        outcomes = await b.store.outcomes([part.id for part in parts])
        assert {outcome.into for outcome in outcomes.values()} == {whole.id}
        await a.carry_through(whole)
        assert await b.store.outcomes([whole.id]) == {whole.id: DONE}

    @over_the_nodes
    async def test_n16_an_outcome_is_told_although_the_owner_changed(
        self, cluster: Cluster
    ) -> None:
        a, b = await cluster.pair()
        await a.admit()
        run, _ = await b.send()
        c = await cluster.node("c")
        await c.bury(a)
        c.take(await c.claim_one())
        b.hints.clear()
        await c.carry_through(run)
        await b.heard(Hint.ENDED)

    # Fairness over nodes (N-17).

    @over_the_nodes
    async def test_n17_a_claim_is_fair_across_agents(self, cluster: Cluster) -> None:
        node = await cluster.node("a")
        for number in range(20):
            await node.leave(f"a{number}")
        cluster.clock.advance(SECOND)
        for agent in ("b", "c"):
            await node.leave(f"{agent}0", agent=AgentName(agent))
        assert await self._claimed(node, "abc", room=3) == ["a0", "b0", "c0"]
        assert await self._claimed(node, "abc", room=3) == ["a1", "a2", "a3"]

    @over_the_nodes
    async def test_n17_lowest_rank_first(self, cluster: Cluster) -> None:
        """F-3: a priority step weighs as much as `ageing`."""
        node = await cluster.node("a")
        ageing = self.settings.ageing
        await node.leave("five", priority=5)
        cluster.clock.advance(2 * ageing)
        await node.leave("two", priority=2)
        await node.leave("zero")
        cluster.clock.advance(2 * ageing - SECOND)
        await node.leave("late", priority=0)
        cluster.clock.advance(2 * SECOND)
        await node.leave("later", priority=0)
        order = [(await self._claimed(node, "a", room=1))[0] for _ in range(5)]
        # Ranks in steps of ageing: 5, 4, 2, just under 4, just over 4.
        assert order == ["zero", "late", "two", "later", "five"]

    @over_the_nodes
    async def test_n17_each_lane_has_its_own_room(self, cluster: Cluster) -> None:
        node = await cluster.node("a")
        for lane in (MAIN, CRON, LaneName("team")):
            for number in range(3):
                await node.leave(f"{lane}{number}", lane=lane)
        claims = await node.store.claim({MAIN: 2, CRON: 1}, [AgentName("a")], cluster.clock.now())
        found = sorted(holding.session for holding in claims.holdings)
        assert found == ["cron0", "main0", "main1"]
        assert claims.more
        claims = await node.store.claim({MAIN: 0}, [AgentName("a")], cluster.clock.now())
        assert claims.holdings == ()
        claims = await node.store.claim({MAIN: 2}, [AgentName("a")], cluster.clock.now())
        assert [holding.session for holding in claims.holdings] == ["main2"]
        assert not claims.more

    @over_the_nodes
    async def test_n20_a_node_claims_only_agents_that_it_knows(self, cluster: Cluster) -> None:
        node = await cluster.node("a")
        await node.leave("s", agent=AgentName("a"))
        await node.leave("s", agent=AgentName("b"))
        await node.leave("t", agent=AgentName("b"))
        assert await self._claimed(node, "c") == []
        assert await self._claimed(node, "") == []
        assert await self._claimed(node, "b") == ["t"]
        assert await self._claimed(node, "a") == ["s"]

    @over_the_nodes
    async def test_n19_work_is_claimed_when_it_is_due(self, cluster: Cluster) -> None:
        node = await cluster.node("a")
        now = cluster.clock.now()
        await node.leave("late", due_at=now + 2 * MINUTE)
        await node.leave("soon", due_at=now + MINUTE)
        await node.leave("other", due_at=now + SECOND, agent=AgentName("b"))
        claims = await node.store.claim({MAIN: 9}, [AgentName("a")], now)
        assert (claims.holdings, claims.next_at) == ((), now + MINUTE)
        assert await self._claimed(node, "a", until=now + MINUTE - 1) == []
        assert await self._claimed(node, "a", until=now + MINUTE) == ["soon"]
        claims = await node.store.claim({MAIN: 9}, [AgentName("a")], now + MINUTE)
        assert (claims.holdings, claims.next_at) == ((), now + 2 * MINUTE)

    @over_the_nodes
    async def test_n19_a_run_that_is_due_sooner_wakes_its_session(self, cluster: Cluster) -> None:
        node = await cluster.node("a")
        now = cluster.clock.now()
        for minutes in (5, 1, 3):
            await node.leave(due_at=now + minutes * MINUTE)
        claims = await node.store.claim({MAIN: 9}, [AgentName("a")], now)
        assert (claims.holdings, claims.next_at) == ((), now + MINUTE)
        await node.leave()
        (holding,) = (await node.claim_all()).values()
        assert [place.seq for place in holding.places] == [1, 2, 3, 4]

    @over_the_nodes
    async def test_n19_what_is_put_back_waits_until_it_is_due(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        until = cluster.clock.now() + MINUTE
        retried, due = await a.admit("retried"), await a.admit("due", due_at=until + SECOND)
        epoch = a.granted(retried).epoch
        await a.record(a.start(retried))
        stands = Standing(after=1, until=until, begun=True, retries=1)
        await a.record(
            Enqueue(retried, State.PENDING, 1, epoch, until, standing=stands, ended=True),
            a.release(retried),
            a.release(due),
        )
        claims = await b.store.claim({MAIN: 9}, [AgentName("a")], cluster.clock.now())
        assert (claims.holdings, claims.next_at) == ((), until)
        assert await self._claimed(b, "a", until=until) == ["retried"]
        assert await self._claimed(b, "a", until=until + SECOND) == ["due"]

    @over_the_nodes
    async def test_f5_a_passed_deadline_is_claimed_without_room(self, cluster: Cluster) -> None:
        node = await cluster.node("a")
        now = cluster.clock.now()
        run = await node.leave("s", deadline_at=now + MINUTE)
        await node.leave("t", deadline_at=now + DAY)
        claims = await node.store.claim({}, [AgentName("a")], now)
        assert (claims.holdings, claims.next_at) == ((), now + MINUTE)
        cluster.clock.advance(MINUTE)
        claims = await node.store.claim({MAIN: 0}, [AgentName("a")], cluster.clock.now())
        assert [holding.places[0].run for holding in claims.holdings] == [run]

    @over_the_nodes
    async def test_f5_a_deadline_outlives_its_sessions_owner(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        deadline_at = cluster.clock.now() + MINUTE
        dead, left = [await a.admit(name, deadline_at=deadline_at) for name in ("dead", "left")]
        await a.record(a.release(left))
        await b.bury(a)
        claims = await b.store.claim({}, [AgentName("a")], cluster.clock.now())
        assert (claims.holdings, claims.next_at) == ((), deadline_at)
        cluster.clock.advance(MINUTE)
        claims = await b.store.claim({}, [AgentName("a")], cluster.clock.now())
        assert {holding.session for holding in claims.holdings} == {dead.session, left.session}

    @over_the_nodes
    async def test_n17_a_deadline_behind_another_run_counts_too(self, cluster: Cluster) -> None:
        node = await cluster.node("a")
        await node.leave("s")
        await node.leave("s", deadline_at=cluster.clock.now() + SECOND)
        cluster.clock.advance(SECOND)
        claims = await node.store.claim({}, [AgentName("a")], cluster.clock.now())
        assert [len(holding.places) for holding in claims.holdings] == [2]

    @over_the_nodes
    async def test_n17_many_of_one_agent_do_not_hide_anothers_one(self, cluster: Cluster) -> None:
        node = await cluster.node("a")
        runs = [node.run(f"a{number}") for number in range(1_000)]
        await asyncio.gather(*(ask(node.store, run, claim=False) for run in runs))
        cluster.clock.advance(MINUTE)
        await node.leave("b", agent=AgentName("b"), priority=9)
        assert "b" in await self._claimed(node, "ab", room=2)

    async def _claimed(
        self, node: Node, agents: str, *, room: int = 99, until: int | None = None
    ) -> list[str]:
        names = [AgentName(agent) for agent in agents]
        at = node.clock.now() if until is None else until
        claims = await node.store.claim({MAIN: room}, names, at)
        return sorted(holding.session for holding in claims.holdings)

    # Limits over all nodes.

    @over_the_nodes
    async def test_f1_admission_limits_hold_over_all_nodes(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        for node in (a, b):
            node.store.set_limits(Limits(max_queue=12, max_queue_per_agent=7))
        sent = await asyncio.gather(
            *(
                node.send(f"{node.name}{number}", source=Source.TASK, agent=AgentName(agent))
                for number, agent in enumerate("xy" * 10)
                for node in (a, b)
            )
        )
        taken = [run for run, answer in sent if isinstance(answer, Granted)]
        assert len(taken) == 12
        by_agent = [sum(run.agent == agent for run in taken) for agent in ("x", "y")]
        assert max(by_agent) <= 7
        turned_away = [answer for _, answer in sent if isinstance(answer, TurnedAway)]
        assert len(turned_away) == 28
        assert len((await b.store.list(RunQuery(state=State.REJECTED))).runs) == 28

    @over_the_nodes
    async def test_n18_slots_are_counted_over_all_nodes(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        assert await a.store.hold_slots(MAIN, 5, 3) == 3
        assert await b.store.hold_slots(MAIN, 5, 3) == 2
        assert await a.store.slots_wanted(MAIN) == 1
        assert await b.store.slots_wanted(MAIN) == 0
        assert await b.store.hold_slots(CRON, 5, 5) == 5
        assert await b.store.hold_slots(MAIN, 5, 2) == 2
        assert await a.store.slots_wanted(MAIN) == 0, "b has all that it wants"

    @over_the_nodes
    async def test_n18_a_smaller_limit_is_kept_over_all_nodes(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        assert await a.store.hold_slots(MAIN, 5, 2) == 2
        assert await b.store.hold_slots(MAIN, 5, 3) == 3
        assert await a.store.hold_slots(MAIN, 3, 1) == 1
        assert await a.store.hold_slots(MAIN, 3, 2) == 1, "four are held, and three may be"
        assert await b.store.hold_slots(MAIN, 3, 1) == 1
        assert await a.store.hold_slots(MAIN, 3, 2) == 2

    @over_the_nodes
    async def test_n18_a_freed_slot_goes_to_who_waited_longest(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        assert await a.store.hold_slots(MAIN, 2, 2) == 2
        a.hints.clear()
        assert await b.store.hold_slots(MAIN, 2, 1) == 0
        await a.heard(Hint.SLOTS)
        assert await a.store.slots_wanted(MAIN) == 1
        b.hints.clear()
        assert await a.store.hold_slots(MAIN, 2, 1) == 1
        await b.heard(Hint.SLOTS)
        assert await a.store.hold_slots(MAIN, 2, 2) == 1, "b has waited longer"
        assert await b.store.hold_slots(MAIN, 2, 1) == 1
        assert await a.store.slots_wanted(MAIN) == 0

    @over_the_nodes
    async def test_n18_who_asks_again_keeps_its_turn(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        c = await cluster.node("c")
        assert await a.store.hold_slots(MAIN, 2, 2) == 2
        assert await b.store.hold_slots(MAIN, 2, 1) == 0
        cluster.clock.advance(SECOND)
        assert await c.store.hold_slots(MAIN, 2, 1) == 0
        cluster.clock.advance(SECOND)
        assert await b.store.hold_slots(MAIN, 2, 1) == 0
        assert await a.store.hold_slots(MAIN, 2, 1) == 1
        assert await c.store.hold_slots(MAIN, 2, 1) == 0
        assert await b.store.hold_slots(MAIN, 2, 1) == 1
        assert await a.store.hold_slots(MAIN, 2, 0) == 0
        assert await c.store.hold_slots(MAIN, 2, 1) == 1

    @over_the_nodes
    async def test_n18_a_dead_nodes_slots_and_wishes_go_with_it(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        c = await cluster.node("c")
        assert await a.store.hold_slots(MAIN, 5, 5) == 5
        assert await b.store.hold_slots(MAIN, 5, 1) == 0
        assert await c.store.hold_slots(MAIN, 5, 1) == 0
        c.hints.clear()
        await c.bury(b)
        await c.bury(a)
        await c.heard(Hint.SLOTS)
        assert await c.store.hold_slots(MAIN, 5, 5) == 5
        assert await c.store.slots_wanted(MAIN) == 0

    @over_the_nodes
    async def test_n18_never_above_the_limit_and_reached(self, cluster: Cluster) -> None:
        nodes = [*await cluster.pair(), await cluster.node("c")]
        limit, held = 5, [0, 0, 0]
        reached = False
        for number in range(ROUNDS):
            held = await asyncio.gather(
                *(
                    node.store.hold_slots(MAIN, limit, count + 2)
                    for node, count in zip(nodes, held, strict=True)
                )
            )
            assert sum(held) <= limit
            reached = reached or sum(held) == limit
            # They give some back at different times, and others take at once.
            fewer = [max(0, count - (number + place) % 3) for place, count in enumerate(held)]
            held = await asyncio.gather(
                *(
                    node.store.hold_slots(MAIN, limit, count)
                    for node, count in zip(nodes, fewer, strict=True)
                )
            )
            assert held == fewer
        assert reached

    # What several nodes read and deliver.

    @over_the_nodes
    async def test_no_two_nodes_take_the_same_delivery(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        run = await a.admit()
        said = [a.delivery(run, number) for number in range(20)]
        await a.record(*(Deliver(delivery) for delivery in said))
        now = cluster.clock.now()
        taken = await asyncio.gather(
            *(
                node.store.take_deliveries(["telegram"], 5, now, now + MINUTE)
                for _ in range(3)
                for node in (a, b)
            )
        )
        ids = [delivery.id for deliveries in taken for delivery in deliveries]
        for _ in range(4):
            rest = await b.store.take_deliveries(["telegram"], 5, now, now + MINUTE)
            ids += [delivery.id for delivery in rest]
        assert sorted(ids) == sorted(delivery.id for delivery in said)

    @over_the_nodes
    async def test_every_node_reads_the_same(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        waits, runs, done = [await a.admit(name) for name in ("waits", "runs", "done")]
        await a.record(a.start(runs))
        await a.carry_through(done)
        for node in (a, b):
            page = await node.store.list(RunQuery())
            states = [view.state for view in page.runs]
            assert states == [State.DONE, State.RUNNING, State.QUEUED]
            assert await node.store.outcomes([waits.id, runs.id, done.id]) == {done.id: DONE}
        assert await a.store.nodes() == await b.store.nodes()
        view = await b.view(a)
        assert (view.name, view.sessions, view.running) == ("a", 3, 1)

    @over_the_nodes
    async def test_n21_a_process_that_is_no_node_adds_and_reads(self, cluster: Cluster) -> None:
        a = await cluster.node("a")
        guest = await cluster.guest()
        run, answer = await guest.send()
        assert answer == Elsewhere(1, owned=False)
        await a.take_over()
        second, answer = await guest.send()
        assert answer == Elsewhere(2, owned=True)
        assert (await a.news("s", 1)).places == (Place(second, 2),)
        assert await guest.try_order("o-1", Stop()) == Elsewhere(3, owned=True)
        await a.carry_through(run)
        assert await guest.store.outcomes([run.id]) == {run.id: DONE}
        assert [view.name for view in await guest.store.nodes()] == ["a"]


def _below(run: Run) -> Family:
    return {
        "source": Source.DELEGATION,
        "parent": run.id,
        "ancestors": (*run.ancestors, run.id),
        "root": run.root or run.session,
    }


class _Any:
    """Equal to everything: for numbers that a test does not care about."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


def _any() -> int:
    return _Any()  # type: ignore[return-value]


def _zombie_actions(
    node: Node, runs: tuple[Run, Run, Run], ticket: int, granted: Granted
) -> dict[str, Callable[[], Action]]:
    """One write of each kind, under the epoch that the node had."""
    first, second, third = runs
    epoch, key = granted.epoch, first.session
    order = Order("o-1", key, Configure(), granted.seq)
    return {
        "start": lambda: node.start(second, slot=1),
        "finish": lambda: node.finish(first),
        "enqueue": lambda: Enqueue(
            first, State.QUEUED, 1, epoch, standing=Standing(after=9), ended=True
        ),
        "merge": lambda: Merge(merged([second, third]), epoch, granted.seq),
        "cancel": lambda: CancelAttempt(first, ticket, Cut.STOPPED, epoch),
        "steer": lambda: Steer(second, ticket, epoch),
        "remember": lambda: Remember(key, MEMORY, epoch),
        "respond": lambda: Respond(order, Answer(1, 1), epoch),
        "deliver": lambda: Deliver(node.delivery(first)),
        "release": lambda: Release(key, epoch, granted.seq),
    }


async def _everything(node: Node) -> object:
    """All that a reader can see of session `s`."""
    now = node.clock.now()
    return (
        (await node.store.list(RunQuery(limit=1_000))).runs,
        await node.store.memory_of(SessionKey("s")),
        await node.store.glimpse(SessionKey("s")),
        await node.store.answers(["o-1"]),
        list(await node.store.take_deliveries(["telegram"], 9, now, now + 1)),
        await node.store.nodes(),
    )
