"""Tokens: made once, kept as a digest, revoked by name (O-4)."""

import pytest

from headway import Headway, InvalidInput
from headway.model.time import DAY
from headway.model.words import Scope
from headway.testing import run_virtual
from headway.tokens import digest_of, parts_of


def test_o4_a_token_is_shown_once_and_kept_as_a_digest() -> None:
    async def scenario() -> None:
        async with Headway() as hw:
            token, shown = await hw.tokens.create("ci", ["submit", "read"], agent="support")
            token_id, secret = parts_of(shown) or ("", "")
            assert token_id == token.id
            assert token.digest == digest_of(secret)
            assert secret not in str(await hw.tokens.list())
            assert token.scopes == (Scope.READ, Scope.SUBMIT)
            assert token.agent == "support"
            assert await hw.tokens.list() == (token,)

    run_virtual(scenario())


def test_o4_two_secrets_are_never_the_same() -> None:
    async def scenario() -> None:
        async with Headway() as hw:
            shown = {(await hw.tokens.create(f"t{n}", "read"))[1] for n in range(100)}
            assert len(shown) == 100
            assert all(len(each) > 60 for each in shown)

    run_virtual(scenario())


def test_o4_a_token_is_revoked_by_its_name_or_id() -> None:
    async def scenario() -> None:
        async with Headway() as hw:
            await hw.tokens.create("one", ["read"])
            two, _ = await hw.tokens.create("two", ["admin"], expires="30d")
            assert two.expires_at == two.created_at + 30 * DAY
            assert await hw.tokens.revoke("one")
            assert not await hw.tokens.revoke("one")
            assert await hw.tokens.revoke(two.id)
            assert await hw.tokens.list() == ()

    run_virtual(scenario())


def test_o4_a_name_that_looks_like_an_id_shadows_none() -> None:
    async def scenario() -> None:
        async with Headway() as hw:
            meant, _ = await hw.tokens.create("meant", ["read"])
            sly, _ = await hw.tokens.create(meant.id, ["admin"])
            assert await hw.tokens.revoke(meant.id)
            assert await hw.tokens.list() == (sly,)

    run_virtual(scenario())


@pytest.mark.parametrize(
    ("field", "name", "scopes"),
    [
        ("name", "", ["read"]),
        ("scopes", "x", []),
        ("scopes", "x", ["write"]),
        ("name", "ci", "read"),
    ],
)
def test_o4_what_is_wrong_is_named(field: str, name: str, scopes: list[str]) -> None:
    async def scenario() -> None:
        async with Headway() as hw:
            await hw.tokens.create("ci", ["read"])
            with pytest.raises(InvalidInput) as refused:
                await hw.tokens.create(name, scopes)
            assert refused.value.field == field

    run_virtual(scenario())


@pytest.mark.parametrize("shown", ["", "hw", "hw_", "hw_id", "hw_id_", "sk_id_secret", "hw__x"])
def test_what_is_no_token_is_seen_at_once(shown: str) -> None:
    assert parts_of(shown) is None
