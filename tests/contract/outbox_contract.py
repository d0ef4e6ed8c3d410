"""What every store must do about what is to be said (`ports.Outbox`): once, given up, tried anew, and where to."""

import asyncio

import msgspec
import pytest

from headway import Route
from headway.core.actions import Action, Deliver
from headway.model.errors import InvalidInput
from headway.model.places import Delivery
from headway.model.run import AgentName, Run
from headway.model.time import DAY, HOUR, MINUTE, SECOND
from headway.ports import LetterQuery
from tests.contract.timekeeper import Timekeeper
from tests.contract.world import CHAT, ODD, Suite, World, over_the_store

A, B = AgentName("a"), AgentName("b")


class OutboxContract(Suite):
    """Derive from it, name the class `Test…`, and say how to make the store."""

    # Said once (H-2).

    @over_the_store
    async def test_h2_the_same_is_not_said_twice_within_its_time(self, world: World) -> None:
        run = await world.admit()
        first = _once(world, run, 1)
        await world.record(Deliver(first))
        world.clock.advance(DAY - 1)
        await world.record(Deliver(_once(world, run, 2)))
        assert await _waiting(world) == [first.id]
        world.clock.advance(1)
        third = _once(world, run, 3)
        await world.record(Deliver(third))
        assert await _waiting(world) == [first.id, third.id], "its time is over"
        world.clock.advance(DAY - 1)
        await world.record(Deliver(_once(world, run, 4)))
        assert len(await _waiting(world)) == 2, "counted from when it was kept"

    @over_the_store
    async def test_h2_another_key_or_none_is_said(self, world: World) -> None:
        run = await world.admit()
        said = [
            _once(world, run, 1),
            _once(world, run, 2, key="another"),
            _once(world, run, 3, key=ODD),
            world.delivery(run, 4),
            world.delivery(run, 5),
        ]
        await world.record(*(Deliver(delivery) for delivery in said))
        assert len(await _waiting(world)) == 5
        await world.record(Deliver(_once(world, run, 6, key=ODD)))
        assert len(await _waiting(world)) == 5

    @over_the_store
    async def test_h2_what_was_said_is_remembered_after_it_was_delivered(
        self, world: World
    ) -> None:
        run = await world.admit()
        first = _once(world, run, 1)
        await world.record(Deliver(first))
        assert await _taken(world) == [first]
        await world.store.settle_delivery(first)
        world.clock.advance(HOUR)
        await world.record(Deliver(_once(world, run, 2)))
        assert await _taken(world) == []

    @over_the_store
    async def test_h2_within_one_batch_it_is_said_once(self, world: World) -> None:
        run = await world.admit()
        batch = [Deliver(_once(world, run, number)) for number in (1, 2)]
        await world.record(*batch)
        assert await _waiting(world) == [batch[0].delivery.id]

    @over_the_store
    async def test_n15_a_repeated_batch_says_what_it_said(self, world: World) -> None:
        run = await world.admit()
        batch: list[Action] = [
            Deliver(_once(world, run, 1)),
            Deliver(world.delivery(run, 2)),
            world.start(run),
        ]
        for _ in range(2):
            await world.record(*batch)
            assert len(await _waiting(world)) == 2
        said = await _taken(world)
        await world.store.settle_delivery(said[0])
        await world.record(*batch)
        assert len(await _waiting(world)) == 1, "said, and not to be said again"

    @over_the_store
    async def test_h2_of_many_at_once_one_is_said(self, world: World) -> None:
        runs = [await world.admit(f"s{number}") for number in range(8)]
        await asyncio.gather(*(world.record(Deliver(_once(world, run, 1))) for run in runs))
        assert len(await _waiting(world)) == 1

    @over_the_store
    async def test_h2_a_notice_of_a_job_is_said_once_too(self, world: World) -> None:
        keeper = Timekeeper(world)
        job = await keeper.add()
        until = world.clock.now() + DAY
        for name in ("first", "second"):
            notice = keeper.notice(name, once="paused", once_until=until)
            assert await keeper.advance(await keeper.step(job, notices=(notice,))) == [()]
        assert await _waiting(world) == ["first"]
        run = await world.admit()
        await world.record(Deliver(_once(world, run, 1, key="paused")))
        assert await _waiting(world) == ["first"]

    @over_the_store
    async def test_h2_a_notice_that_was_not_kept_does_not_silence_others(
        self, world: World
    ) -> None:
        keeper = Timekeeper(world)
        job = await keeper.add()
        until = world.clock.now() + DAY
        stale = await keeper.step(
            job, notices=(keeper.notice("stale", once="k", once_until=until),)
        )
        await keeper.skip(job)
        assert await keeper.advance(stale) == [None]
        fresh = keeper.notice("fresh", once="k", once_until=until)
        assert await keeper.advance(await keeper.step(job, notices=(fresh,))) == [()]
        assert await _waiting(world) == ["fresh"]

    @over_the_store
    async def test_h2_keys_of_what_was_said_are_forgotten_after_their_time(
        self, world: World
    ) -> None:
        run = await world.admit()
        await world.record(Deliver(_once(world, run, 1)))
        await world.carry_through(run)
        world.clock.advance(DAY)
        assert await world.store.prune(1_000) == 1
        assert await world.store.find(run.id) is None
        again = await world.admit()
        await world.record(Deliver(_once(world, again, 1)))
        assert len(await _waiting(world)) == 2

    # Dead letters (T-4).

    @over_the_store
    async def test_t4_what_was_given_up_is_kept_as_a_dead_letter(self, world: World) -> None:
        run = await world.admit()
        told, failed, dead = (world.delivery(run, number) for number in (1, 2, 3))
        await world.record(Deliver(told), Deliver(failed), Deliver(dead))
        taken = await _taken(world)
        await world.store.settle_delivery(taken[0])
        await world.store.settle_delivery(taken[1], world.clock.now() + HOUR, "no network")
        await world.store.settle_delivery(taken[2], error="it's 100 % gone: é")
        (letter,) = await _letters(world, dead=True)
        assert letter == msgspec.structs.replace(dead, tries=1, error="it's 100 % gone: é")
        (waits,) = await _letters(world, dead=False)
        again_at = world.clock.now() + HOUR
        assert waits == msgspec.structs.replace(
            failed, tries=1, error="no network", due_at=again_at
        )
        world.clock.advance(2 * HOUR)
        assert [delivery.id for delivery in await _taken(world)] == [failed.id]

    @over_the_store
    async def test_t4_a_letter_counts_all_its_tries(self, world: World) -> None:
        run = await world.admit()
        await world.record(Deliver(world.delivery(run)))
        for number in range(3):
            (taken,) = await _taken(world)
            assert taken.tries == number
            await world.store.settle_delivery(taken, world.clock.advance(SECOND), f"no {number}")
            (waits,) = await _letters(world, dead=False)
            assert (waits.tries, waits.error) == (number + 1, f"no {number}")
        (taken,) = await _taken(world)
        await world.store.settle_delivery(taken, error="gone")
        (letter,) = await _letters(world, dead=True)
        assert (letter.tries, letter.error) == (4, "gone")
        assert await _letters(world, dead=False) == []

    @over_the_store
    async def test_n15_a_try_that_is_settled_twice_counts_once(self, world: World) -> None:
        run = await world.admit()
        await world.record(Deliver(world.delivery(run)))
        (taken,) = await _taken(world)
        for _ in range(2):
            await world.store.settle_delivery(taken, world.clock.now(), "no network")
        (again,) = await _taken(world)
        assert again.tries == 1
        for _ in range(2):
            await world.store.settle_delivery(again, error="gone")
        (letter,) = await _letters(world, dead=True)
        assert letter.tries == 2

    @over_the_store
    async def test_t4_a_dead_letter_can_be_sent_as_if_it_were_new(self, world: World) -> None:
        run = await world.admit()
        said = world.delivery(run)
        await world.record(Deliver(said))
        await _bury(world, said)
        world.clock.advance(HOUR - 1)
        now = world.clock.now()
        assert await world.store.retry_letter(said.id, now)
        assert not await world.store.retry_letter(said.id, now), "it is none any more"
        assert await _letters(world, dead=True) == []
        fresh = msgspec.structs.replace(said, first_at=now)
        assert await _letters(world, dead=False) == [msgspec.structs.replace(fresh, due_at=now)]
        assert await _taken(world) == [fresh]
        await world.store.settle_delivery(fresh, error="again")
        (letter,) = await _letters(world, dead=True)
        assert (letter.tries, letter.error, letter.first_at) == (1, "again", now)

    @over_the_store
    async def test_t4_only_a_dead_letter_can_be_retried(self, world: World) -> None:
        run = await world.admit()
        waits, told = world.delivery(run, 1), world.delivery(run, 2)
        await world.record(Deliver(waits), Deliver(told))
        await world.store.settle_delivery(told)
        for delivery_id in (waits.id, told.id, "nope"):
            assert not await world.store.retry_letter(delivery_id, world.clock.now())
        assert [letter.id for letter in await _letters(world, dead=False)] == [waits.id]

    @over_the_store
    async def test_t4_what_waits_and_what_was_given_up_can_be_listed_together(
        self, world: World
    ) -> None:
        run = await world.admit()
        said = []
        for number in range(4):
            said.append(world.delivery(run, number))
            await world.record(Deliver(said[-1]))
            world.clock.advance(SECOND)
        await world.store.settle_delivery(said[1], error="gone")
        listed: list[Delivery] = []
        cursor: str | None = None
        for _ in range(2):
            page = await world.store.letters(LetterQuery(None, limit=2, cursor=cursor))
            listed += page.letters
            cursor = page.cursor
        assert cursor is None
        assert [letter.id for letter in listed] == [letter.id for letter in said]
        assert [letter.due_at is None for letter in listed] == [False, True, False, False]
        assert (await world.store.letters(LetterQuery(None, "nowhere"))).letters == ()

    @over_the_store
    async def test_t4_letters_are_listed_the_oldest_first_and_paged(self, world: World) -> None:
        run = await world.admit()
        said = []
        for number in range(7):
            said.append(world.delivery(run, 9 - number, "web" if number % 2 else "telegram"))
            await world.record(Deliver(said[-1]))
            world.clock.advance(SECOND)
        for dead in (False, True):
            listed: list[str] = []
            cursor: str | None = None
            for size in (3, 3, 1):
                page = await world.store.letters(LetterQuery(dead, limit=3, cursor=cursor))
                assert len(page.letters) == size
                listed += [letter.id for letter in page.letters]
                cursor = page.cursor
            assert cursor is None
            assert listed == [delivery.id for delivery in said]
            assert (await world.store.letters(LetterQuery(dead, limit=7))).cursor is None
            web = await world.store.letters(LetterQuery(dead, "web", limit=2))
            rest = await world.store.letters(LetterQuery(dead, "web", cursor=web.cursor))
            ids = [letter.id for letter in (*web.letters, *rest.letters)]
            assert ids == [delivery.id for delivery in said[1::2]]
            assert await _letters(world, dead=not dead) == []
            for delivery in said:
                await world.store.settle_delivery(delivery, error="gone")

    @over_the_store
    async def test_t4_letters_of_one_instant_are_paged_too(self, world: World) -> None:
        run = await world.admit()
        said = [world.delivery(run, number) for number in range(1, 6)]
        await world.record(*(Deliver(delivery) for delivery in said))
        for delivery in said:
            await world.store.settle_delivery(delivery, error="gone")
        page = await world.store.letters(LetterQuery(limit=2))
        assert await world.store.retry_letter(page.letters[1].id, world.clock.now())
        rest = await world.store.letters(LetterQuery(cursor=page.cursor))
        ids = [letter.id for letter in (*page.letters, *rest.letters)]
        assert ids == [delivery.id for delivery in said]

    @pytest.mark.parametrize("cursor", ["x", "", "1" * 30, "[]", "1; drop table outbox"])
    def test_a_cursor_that_no_page_of_letters_gave_is_refused(self, cursor: str) -> None:
        @over_the_store
        async def main(self: OutboxContract, world: World) -> None:
            with pytest.raises(InvalidInput) as refused:
                await world.store.letters(LetterQuery(cursor=cursor))
            assert refused.value.field == "cursor"

        main(self)

    @over_the_store
    async def test_d8_dead_letters_are_forgotten_after_their_retention(self, world: World) -> None:
        run = await world.admit()
        dead, waits = world.delivery(run, 1), world.delivery(run, 2)
        await world.record(Deliver(dead), Deliver(waits))
        await world.store.settle_delivery(dead, error="gone")
        world.clock.advance(self.settings.retention - 1)
        await world.store.prune(1_000)
        assert len(await _letters(world, dead=True)) == 1
        world.clock.advance(1)
        await world.store.prune(1_000)
        assert await _letters(world, dead=True) == []
        assert [letter.id for letter in await _letters(world, dead=False)] == [waits.id]

    @over_the_store
    async def test_o3_letters_are_counted(self, world: World) -> None:
        assert await world.store.count_letters() == (0, 0)
        run = await world.admit()
        said = [world.delivery(run, number) for number in range(4)]
        await world.record(*map(Deliver, said))
        assert await world.store.count_letters() == (4, 0)
        await world.store.settle_delivery(said[0])
        await world.store.settle_delivery(said[1], error="gone")
        await world.store.settle_delivery(said[2], again_at=world.clock.now() + DAY, error="later")
        assert await world.store.count_letters() == (2, 1)
        assert await world.store.retry_letter(said[1].id, world.clock.now())
        assert await world.store.count_letters() == (3, 0)

    # Where the latest message came from (H-1).

    @over_the_store
    async def test_h1_the_latest_route_of_an_agent_is_kept(self, world: World) -> None:
        store = world.store
        assert await store.last_route(A) is None
        await store.note_routes({A: CHAT, B: Route("web")}, 10)
        assert await store.last_route(A) == CHAT
        assert await store.last_route(B) == Route("web")
        odd = Route("telegram", account=ODD, peer=ODD, thread=ODD)
        await store.note_routes({A: odd}, 11)
        await store.note_routes({A: CHAT}, 9)
        await store.note_routes({}, 12)
        assert await store.last_route(A) == odd, "an older note never replaces a newer one"
        assert await store.last_route(B) == Route("web")


def _once(world: World, run: Run, number: int, key: str = "key") -> Delivery:
    return msgspec.structs.replace(
        world.delivery(run, number), once=key, once_until=world.clock.now() + DAY
    )


async def _bury(world: World, said: Delivery) -> None:
    (taken,) = await _taken(world)
    assert taken == said
    await world.store.settle_delivery(taken, error="gone")


async def _taken(world: World) -> list[Delivery]:
    now = world.clock.now()
    return list(await world.store.take_deliveries(["telegram"], 10, now, now + MINUTE))


async def _letters(world: World, *, dead: bool | None) -> list[Delivery]:
    return list((await world.store.letters(LetterQuery(dead))).letters)


async def _waiting(world: World) -> list[str]:
    return [letter.id for letter in await _letters(world, dead=False)]
