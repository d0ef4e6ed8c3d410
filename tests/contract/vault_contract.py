"""What every store must do about tokens (`ports.Vault`): who may ask a server for what (O-4)."""

import asyncio

import msgspec

from headway.model.run import AgentName
from headway.model.token import Token
from headway.model.words import Scope
from tests.contract.world import ODD, Suite, World, over_the_store

TOKEN = Token("t1", "laptop", "d" * 64, (Scope.READ, Scope.SUBMIT), 5)


class VaultContract(Suite):
    """Derive from it, name the class `Test…`, and say how to make the store."""

    @over_the_store
    async def test_o4_tokens_are_kept_as_they_were_the_oldest_first(self, world: World) -> None:
        store = world.store
        assert list(await store.tokens()) == []
        bound = Token("t0", 'says "hi" \\', "e" * 64, (Scope.ADMIN,), 7, AgentName(ODD), 99)
        early = Token("t9", "early", "f" * 64, (), 3)
        same_age = msgspec.structs.replace(TOKEN, id="t2", name="phone")
        for token in (same_age, bound, TOKEN, early):
            assert await store.add_token(token)
        assert list(await store.tokens()) == [early, TOKEN, same_age, bound]

    @over_the_store
    async def test_o4_a_name_belongs_to_one_token(self, world: World) -> None:
        store = world.store
        assert await store.add_token(TOKEN)
        assert not await store.add_token(msgspec.structs.replace(TOKEN, id="t2"))
        assert not await store.add_token(msgspec.structs.replace(TOKEN, name="another")), (
            "nor its id"
        )
        assert list(await store.tokens()) == [TOKEN]

    @over_the_store
    async def test_n15_a_token_that_is_added_again_is_the_one_that_is_there(
        self, world: World
    ) -> None:
        for _ in range(2):
            assert await world.store.add_token(TOKEN)
        assert list(await world.store.tokens()) == [TOKEN]

    @over_the_store
    async def test_o4_of_many_of_one_name_at_once_one_is_kept(self, world: World) -> None:
        tokens = [msgspec.structs.replace(TOKEN, id=f"t{number}") for number in range(8)]
        added = await asyncio.gather(*map(world.store.add_token, tokens))
        assert sum(added) == 1
        assert list(await world.store.tokens()) == [tokens[added.index(True)]]

    @over_the_store
    async def test_o4_a_revoked_token_is_gone_and_its_name_is_free(self, world: World) -> None:
        store = world.store
        assert not await store.revoke_token("t1")
        await store.add_token(TOKEN)
        assert not await store.revoke_token(TOKEN.name), "by its id, not by its name"
        assert await store.revoke_token(TOKEN.id)
        assert not await store.revoke_token(TOKEN.id)
        assert list(await store.tokens()) == []
        assert await store.add_token(msgspec.structs.replace(TOKEN, id="t2"))

    @over_the_store
    async def test_o4_no_store_has_a_token_of_an_id_that_it_cannot_write(
        self, world: World
    ) -> None:
        assert not await world.store.revoke_token(ODD)


class DurableVaultContract(VaultContract):
    """Of stores that outlive their process."""

    @over_the_store
    async def test_o4_tokens_outlive_the_process(self, world: World) -> None:
        await world.store.add_token(TOKEN)
        await world.restart()
        assert list(await world.store.tokens()) == [TOKEN]
