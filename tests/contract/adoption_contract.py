"""What a store does about work that outlives its node: left to its machine for a while, then to all (W-2)."""

from headway import Settings, State
from headway.core.actions import CancelAttempt, Enqueue, Start
from headway.model.places import Holding, Place, Standing, Stop
from headway.model.run import AgentName, Run, SessionKey
from headway.model.time import DAY, MINUTE, SECOND
from headway.model.words import Cut, Rule
from headway.ports import Claims, Elsewhere, Granted, Hint
from tests.contract.cluster import Cluster, Node, over_the_nodes
from tests.contract.world import DONE, MAIN, Suite, World, over_the_store, view_of

HERE, THERE = "machine a", "machine b"
SESSION = SessionKey("s")


class AdoptionContract(Suite):
    """For stores of many nodes. Derive from it, name the class `Test…`, and say how to make the stores."""

    @over_the_nodes
    async def test_w2_work_that_outlives_its_node_is_left_to_its_machine(
        self, cluster: Cluster
    ) -> None:
        a, b, other = await _machines(cluster)
        run = await _outlive(a)
        began_at = cluster.clock.now()
        cluster.clock.advance(SECOND)
        await other.bury(a)
        assert await _claim(other) == {}
        holding = (await _claim(b))[SESSION]
        place = Place(run, 1, 1, orphaned=True, started_at=began_at, host=HERE)
        assert holding.places == (place,)
        assert await view_state(other, run) is State.QUEUED

    @over_the_nodes
    async def test_w2_its_machine_takes_it_without_room(self, cluster: Cluster) -> None:
        a, b, other = await _machines(cluster)
        await _outlive(a)
        await other.bury(a)
        assert await _claim(b, room=0) != {}

    @over_the_nodes
    async def test_w2_what_is_more_than_is_taken_at_once_is_asked_for_at_once(
        self, cluster: Cluster
    ) -> None:
        a, b, other = await _machines(cluster)
        for number in range(130):
            await _outlive(a, f"s{number}")
        await other.bury(a)
        first = await _ask(b, room=0)
        assert first.next_at == cluster.clock.now() + 1
        then = await _ask(b, room=0)
        assert len(first.holdings) + len(then.holdings) == 130
        assert then.next_at is None

    @over_the_nodes
    async def test_w2_when_the_grace_is_over_anybody_may_have_it(self, cluster: Cluster) -> None:
        """Who asked meanwhile was told when that is."""
        a, _, other = await _machines(cluster)
        run = await _outlive(a)
        await other.bury(a)
        ends_at = cluster.clock.now() + self.settings.adoption_grace
        assert (await _ask(other)).next_at == ends_at
        cluster.clock.advance(self.settings.adoption_grace - 1)
        claims = await _ask(other)
        assert (claims.holdings, claims.next_at, claims.more) == ((), ends_at, False)
        cluster.clock.advance(1)
        assert await _claim(other, room=0) == {}, "it needs room like any other"
        holding = (await _claim(other))[SESSION]
        assert [(place.run, place.host) for place in holding.places] == [(run, HERE)]

    @over_the_nodes
    async def test_w2_anybody_sees_on_which_machine_a_node_runs(self, cluster: Cluster) -> None:
        a, b, other = await _machines(cluster)
        hosts = {view.id: view.host for view in await other.store.nodes()}
        assert hosts == {a.node: HERE, b.node: HERE, other.node: THERE}

    @over_the_nodes
    async def test_x1_anybody_sees_for_whom_a_session_is_reserved(self, cluster: Cluster) -> None:
        a, _, other = await _machines(cluster)
        run = await _outlive(a)
        await other.bury(a)
        glimpse = await other.store.glimpse(SESSION)
        assert glimpse is not None
        assert [place.run for place in glimpse.holding.places] == [run]
        ends_at = cluster.clock.now() + self.settings.adoption_grace
        seen = glimpse.owner, glimpse.reserved_for, glimpse.reserved_until, glimpse.running
        assert seen == (0, HERE, ends_at, ())

    @over_the_nodes
    async def test_w2_its_machine_may_still_come_first_after_the_grace(
        self, cluster: Cluster
    ) -> None:
        a, b, other = await _machines(cluster)
        await _outlive(a)
        await other.bury(a)
        cluster.clock.advance(DAY)
        assert await _claim(b, room=0) != {}
        assert await _claim(other) == {}

    @over_the_nodes
    async def test_w2_the_grace_is_the_dead_nodes_own(self, cluster: Cluster) -> None:
        """Whoever declares it dead may go by another setting."""
        a = await cluster.node("a", HERE)
        other = await cluster.node("other", THERE, Settings(adoption_grace=DAY))
        await _outlive(a)
        await other.bury(a)
        cluster.clock.advance(self.settings.adoption_grace)
        assert await _claim(other) != {}

    @over_the_nodes
    async def test_w2_other_work_of_the_same_node_is_free_at_once(self, cluster: Cluster) -> None:
        a, _, other = await _machines(cluster)
        await _outlive(a)
        plain = await a.admit("plain")
        await a.record(a.start(plain))
        waits = await a.admit("waits")
        await other.bury(a)
        holdings = await _claim(other)
        assert set(holdings) == {plain.session, waits.session}
        assert [place.host for place in holdings[plain.session].places] == [""]

    @over_the_nodes
    async def test_w2_a_node_that_leaves_in_good_order_reserves_nothing(
        self, cluster: Cluster
    ) -> None:
        a, _, other = await _machines(cluster)
        await _outlive(a)
        await a.store.retire()
        (place,) = (await _claim(other))[SESSION].places
        assert (place.orphaned, place.host) == (True, "")

    @over_the_nodes
    async def test_w2_a_node_that_names_no_machine_reserves_nothing(self, cluster: Cluster) -> None:
        a, b = await cluster.pair()
        await _outlive(a)
        await b.bury(a)
        (place,) = (await _claim(b))[SESSION].places
        assert (place.orphaned, place.host) == (True, "")

    @over_the_nodes
    async def test_w2_what_had_ended_or_waits_again_is_not_reserved(self, cluster: Cluster) -> None:
        a, _, other = await _machines(cluster)
        ended, again = await _outlive(a, "ended"), await _outlive(a, "again")
        epoch = a.granted(again).epoch
        standing = Standing(1, begun=True)
        await a.record(
            a.finish(ended, DONE),
            Enqueue(again, State.QUEUED, 1, epoch, cut=Cut.LOST, standing=standing, ended=True),
        )
        await other.bury(a)
        holdings = await _claim(other)
        assert list(holdings) == [again.session]
        (place,) = holdings[again.session].places
        assert (place.attempt, place.standing, place.orphaned) == (1, standing, False)

    @over_the_nodes
    async def test_w2_a_node_without_the_agent_leaves_it_to_one_that_has_it(
        self, cluster: Cluster
    ) -> None:
        a, b, other = await _machines(cluster)
        run = await _outlive(a, agent=AgentName("command"))
        await other.bury(a)
        assert await _claim(b, "other") == {}
        holdings = await _claim(b, "other", "command")
        assert [place.run for place in holdings[SESSION].places] == [run]

    @over_the_nodes
    async def test_w2_neither_a_deadline_nor_an_order_breaks_the_reservation(
        self, cluster: Cluster
    ) -> None:
        """Its machine sees to both, and if it does not, whoever comes after the grace."""
        a, b, other = await _machines(cluster)
        late = await _outlive(a, "late", deadline_at=cluster.clock.now() + SECOND)
        stopped = await _outlive(a, "stopped")
        await other.bury(a)
        order = await other.try_order("o", Stop(), "stopped")
        assert isinstance(order, Elsewhere)
        cluster.clock.advance(2 * SECOND)
        assert await _claim(other) == {}
        found = await _claim(b, room=0)
        assert set(found) == {late.session, stopped.session}
        assert [each.id for each in found[stopped.session].orders] == ["o"]

    @over_the_nodes
    async def test_w2_what_must_end_is_taken_by_anybody_after_the_grace(
        self, cluster: Cluster
    ) -> None:
        a, _, other = await _machines(cluster)
        await _outlive(a, deadline_at=cluster.clock.now() + SECOND)
        await other.bury(a)
        assert (await _ask(other, "stranger")).next_at is not None
        cluster.clock.advance(self.settings.adoption_grace)
        assert await _claim(other, "stranger", room=0) != {}

    @over_the_nodes
    async def test_w2_a_run_that_comes_meanwhile_does_not_break_it(self, cluster: Cluster) -> None:
        a, b, other = await _machines(cluster)
        await _outlive(a)
        await other.bury(a)
        late, answer = await other.send("s")
        assert isinstance(answer, Elsewhere)
        assert not answer.owned
        assert await _claim(other) == {}
        holding = (await _claim(b))[SESSION]
        assert [place.run for place in holding.places][1:] == [late]

    @over_the_nodes
    async def test_w2_the_adopted_attempt_is_the_same_and_an_old_owner_is_shut_out(
        self, cluster: Cluster
    ) -> None:
        """R-4, X-4: a new epoch; its true start is kept, and it outlives its next node as well."""
        a, b, other = await _machines(cluster)
        run = await _outlive(a)
        began_at = cluster.clock.now()
        late = a.finish(run)
        cluster.clock.advance(SECOND)
        await other.bury(a)
        holding = await _adopt(b, run, began_at)
        assert holding.epoch > a.granted(run).epoch
        assert (await a.store.record([late])).lost == ((SESSION, a.granted(run).epoch),)
        view = await view_of(other.store, run)
        assert (view.state, view.attempt, view.started_at) == (State.RUNNING, 1, began_at)
        await other.bury(b)
        c = await cluster.node("c", HERE)
        (place,) = (await _claim(c))[SESSION].places
        assert place == Place(run, 1, 1, orphaned=True, started_at=began_at, host=HERE)

    @over_the_nodes
    async def test_w2_who_dies_before_it_goes_on_leaves_it_to_its_machine_again(
        self, cluster: Cluster
    ) -> None:
        """The worker still lives: nobody else may start another one beside it."""
        a, b, other = await _machines(cluster)
        run = await _outlive(a)
        began_at = cluster.clock.now()
        await other.bury(a)
        assert await _claim(b) != {}
        cluster.clock.advance(SECOND)
        await other.bury(b)
        assert await _claim(other) == {}
        c = await cluster.node("c", HERE)
        (place,) = (await _claim(c))[SESSION].places
        assert place == Place(run, 1, 1, orphaned=True, started_at=began_at, host=HERE)

    @over_the_nodes
    async def test_w2_who_had_it_after_the_grace_and_dies_reserves_nothing(
        self, cluster: Cluster
    ) -> None:
        a, b, other = await _machines(cluster)
        await _outlive(a)
        await other.bury(a)
        cluster.clock.advance(self.settings.adoption_grace)
        assert await _claim(other) != {}
        await b.bury(other)
        again = await cluster.node("again", "machine c")
        assert await _claim(again) != {}

    @over_the_nodes
    async def test_n15_an_adopted_start_that_comes_again_is_the_same(
        self, cluster: Cluster
    ) -> None:
        a, b, other = await _machines(cluster)
        run = await _outlive(a)
        await other.bury(a)
        await _adopt(b, run, cluster.clock.now(), times=2)
        assert (await view_of(b.store, run)).attempt == 1
        await b.record(b.finish(run))
        assert await view_state(other, run) is State.DONE

    @over_the_nodes
    async def test_n15_a_claim_whose_answer_was_lost_is_found_again_with_its_machine(
        self, cluster: Cluster
    ) -> None:
        a, b, other = await _machines(cluster)
        run = await _outlive(a)
        await other.bury(a)
        claimed = (await _claim(b))[SESSION]
        (found,) = await b.store.news({}, complete=True)
        assert found == claimed
        assert [(place.run, place.host) for place in found.places] == [(run, HERE)]

    @over_the_nodes
    async def test_w2_once_taken_over_it_is_an_ordinary_session(self, cluster: Cluster) -> None:
        """What its new owner gives back is free for all: nobody waits for the machine any more."""
        a, b, other = await _machines(cluster)
        run = await _outlive(a, max_attempts=2)
        await other.bury(a)
        holding = (await _claim(b))[SESSION]
        b.take(holding)
        until = cluster.clock.now() + MINUTE
        standing = Standing(1, held=Rule.RETRY, until=until, begun=True)
        wait = Enqueue(run, State.PENDING, 1, holding.epoch, until, standing=standing)
        await b.record(wait, b.release(run))
        cluster.clock.advance(MINUTE)
        (place,) = (await _claim(other))[SESSION].places
        assert (place.attempt, place.standing) == (1, standing)

    @over_the_nodes
    async def test_w2_the_next_attempt_elsewhere_is_that_machines(self, cluster: Cluster) -> None:
        a, b, other = await _machines(cluster)
        run = await _outlive(a, max_attempts=3)
        await other.bury(a)
        cluster.clock.advance(self.settings.adoption_grace)
        other.take((await _claim(other))[SESSION])
        await other.record(other.start(run, attempt=2, outlives=True))
        await b.bury(other)
        assert await _claim(b) == {}
        again = await cluster.node("again", THERE)
        (place,) = (await _claim(again))[SESSION].places
        assert (place.attempt, place.host) == (2, THERE)

    @over_the_nodes
    async def test_t5_a_cut_is_kept_for_whoever_adopts(self, cluster: Cluster) -> None:
        a, b, other = await _machines(cluster)
        run = await _outlive(a)
        await a.record(CancelAttempt(run, 1, Cut.STOPPED, a.granted(run).epoch))
        await other.bury(a)
        (place,) = (await _claim(b))[SESSION].places
        assert (place.cut, place.host) == (Cut.STOPPED, HERE)

    @over_the_nodes
    async def test_t5_a_cut_that_is_asked_for_again_is_kept_with_the_start(
        self, cluster: Cluster
    ) -> None:
        """Both are decided in one step, and so they come in one batch."""
        a, b, other = await _machines(cluster)
        run = await _outlive(a)
        await a.record(CancelAttempt(run, 1, Cut.STOPPED, a.granted(run).epoch))
        await other.bury(a)
        holding = (await _claim(b))[SESSION]
        b.take(holding)
        start = Start(run, 9, 1, holding.epoch, cluster.clock.now(), outlives=True, adopts=True)
        await b.record(start, CancelAttempt(run, 9, Cut.STOPPED, holding.epoch))
        assert (await view_of(other.store, run)).cancelling
        await other.bury(b)
        c = await cluster.node("c", HERE)
        (place,) = (await _claim(c))[SESSION].places
        assert (place.cut, place.host) == (Cut.STOPPED, HERE)

    @over_the_nodes
    async def test_d5_its_machine_is_told_that_there_is_something(self, cluster: Cluster) -> None:
        a, b, other = await _machines(cluster)
        await _outlive(a)
        b.hints.clear()
        await other.bury(a)
        await b.heard(Hint.WORK)


class RestartContract(Suite):
    """For stores that one process owns after the other. Derive from it, and say how to make the store."""

    @over_the_store
    async def test_w2_the_next_process_of_the_machine_has_it_at_once(self, world: World) -> None:
        await world.restart(HERE)
        run = await world.admit()
        await world.record(world.start(run, outlives=True))
        await world.restart()
        (place,) = (await world.claim_one()).places
        assert (place.orphaned, place.host) == (True, HERE)

    @over_the_store
    async def test_w2_on_another_machine_it_waits_for_the_grace(self, world: World) -> None:
        await world.restart(HERE)
        run = await world.admit()
        await world.record(world.start(run, outlives=True))
        await world.restart(THERE)
        assert await world.claim_all() == {}
        world.clock.advance(self.settings.adoption_grace)
        (place,) = (await world.claim_one()).places
        assert (place.run, place.host) == (run, HERE)


async def _machines(cluster: Cluster) -> tuple[Node, Node, Node]:
    """Two nodes of one machine, and one of another."""
    return (
        await cluster.node("a", HERE),
        await cluster.node("b", HERE),
        await cluster.node("other", THERE),
    )


async def _outlive(node: Node, session: str = "s", **fields: object) -> Run:
    """A run of this node whose work goes on without it."""
    run = await node.admit(session, **fields)  # type: ignore[arg-type]
    await node.record(node.start(run, outlives=True))
    return run


async def _adopt(node: Node, run: Run, began_at: int, times: int = 1) -> Holding:
    holding = (await _claim(node))[SESSION]
    node.hold(run, Granted(holding.epoch, holding.seen))
    start = Start(run, 99, 1, holding.epoch, began_at, outlives=True, adopts=True)
    for _ in range(times):
        await node.record(start)
    return holding


async def _ask(node: Node, *agents: str, room: int = 100) -> Claims:
    names = [AgentName(agent) for agent in agents or ("a",)]
    return await node.store.claim({MAIN: room}, names, node.clock.now())


async def _claim(node: Node, *agents: str, room: int = 100) -> dict[SessionKey, Holding]:
    claims = await _ask(node, *agents, room=room)
    return {holding.session: holding for holding in claims.holdings}


async def view_state(node: Node, run: Run) -> State:
    return (await view_of(node.store, run)).state
