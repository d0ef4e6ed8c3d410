"""Tokens as a server knows them (O-4)."""

import asyncio
from collections.abc import Sequence

import pytest

from headway.gateway.access.book import FRESH, SOON, TokenBook
from headway.model.errors import StoreUnavailable
from headway.model.time import SECOND
from headway.model.token import Token
from headway.model.words import Scope
from headway.testing import VirtualClock
from headway.tokens import digest_of

SECRET = "s3cret"
TOKEN = Token("t1", "ci", digest_of(SECRET), (Scope.READ,), created_at=0)


class Shelf:
    """A store of tokens that counts how often it is read, and may be away."""

    def __init__(self, *tokens: Token) -> None:
        self.tokens = tokens
        self.reads = 0
        self.away = False

    async def read(self) -> Sequence[Token]:
        self.reads += 1
        if self.away:
            raise StoreUnavailable("sqlite", "locked")
        return self.tokens


def book_of(shelf: Shelf) -> tuple[TokenBook, VirtualClock]:
    clock = VirtualClock()
    return TokenBook(shelf.read, clock.elapsed, clock.wall), clock


def find(book: TokenBook, shown: str) -> Token | None:
    return asyncio.run(book.find(shown))


@pytest.mark.parametrize(
    "shown", ["", "hw", "hw_t1", "hw_t1_", "hw_t1_wrong", "hw_t2_s3cret", "xx_t1_s3cret", "hw_t1_é"]
)
def test_o4_what_is_no_token_is_not_found(shown: str) -> None:
    book, _ = book_of(Shelf(TOKEN))
    assert find(book, shown) is None


def test_o4_the_right_secret_is() -> None:
    book, _ = book_of(Shelf(TOKEN))
    assert find(book, f"hw_t1_{SECRET}") == TOKEN


def test_o4_a_token_expires_at_its_instant() -> None:
    clock = VirtualClock()
    until = clock.now() + 10 * SECOND
    shelf = Shelf(Token("t1", "ci", digest_of(SECRET), (Scope.READ,), 0, expires_at=until))
    book = TokenBook(shelf.read, clock.elapsed, clock.wall)
    clock.advance(10 * SECOND - 1)
    assert find(book, f"hw_t1_{SECRET}") is not None
    clock.advance(1)
    assert find(book, f"hw_t1_{SECRET}") is None
    assert asyncio.run(book.any())


def test_the_store_is_read_again_only_when_what_is_known_is_old() -> None:
    shelf = Shelf()
    book, clock = book_of(shelf)
    assert not asyncio.run(book.any())
    shelf.tokens = (TOKEN,)
    clock.advance(FRESH - 1)
    assert not asyncio.run(book.any())
    assert shelf.reads == 1
    clock.advance(1)
    assert asyncio.run(book.any())
    assert shelf.reads == 2


def test_while_the_store_is_away_those_go_on_that_were_known() -> None:
    shelf = Shelf(TOKEN)
    book, clock = book_of(shelf)
    assert find(book, f"hw_t1_{SECRET}") == TOKEN
    shelf.away = True
    clock.advance(FRESH)
    assert find(book, f"hw_t1_{SECRET}") == TOKEN


def test_a_server_that_never_could_read_them_lets_nobody_in() -> None:
    shelf = Shelf(TOKEN)
    shelf.away = True
    book, _ = book_of(shelf)
    with pytest.raises(StoreUnavailable):
        find(book, f"hw_t1_{SECRET}")


def test_o4_a_new_token_works_almost_at_once_and_unknown_ones_do_not_flood_the_store() -> None:
    shelf = Shelf(TOKEN)
    book, clock = book_of(shelf)
    assert find(book, f"hw_t1_{SECRET}") == TOKEN
    new = Token("t2", "new", digest_of(SECRET), (Scope.READ,), created_at=0)
    shelf.tokens = (TOKEN, new)
    for _ in range(100):
        assert find(book, f"hw_t2_{SECRET}") is None
    assert shelf.reads == 1
    clock.advance(SOON)
    assert find(book, f"hw_t2_{SECRET}") == new
    assert shelf.reads == 2
