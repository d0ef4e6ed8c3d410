"""Columns written as PostgreSQL's array texts come back as they were."""

import asyncio

import asyncpg
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.store.postgres.literals import Call, numbers, texts
from tests.postgres import fresh_url

_ANY_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
_TEXTS = st.lists(
    st.one_of(st.none(), _ANY_TEXT, st.sampled_from(['"', "\\", "\x01", "", "NULL", "{,}"]))
)
_NUMBERS = st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)))


def _read(kind: str, written: list[str]) -> list[object]:
    async def main() -> list[object]:
        connection = await asyncpg.connect(fresh_url().partition("?")[0])
        try:
            statement = f"select $1::text::{kind}[]"
            return [await connection.fetchval(statement, text) for text in written]
        finally:
            await connection.close()

    return asyncio.run(main())


@settings(max_examples=5, deadline=None)
@given(columns=st.lists(_TEXTS, min_size=40, max_size=40))
def test_n15_any_texts_come_back_as_they_were(columns: list[list[str | None]]) -> None:
    assert _read("text", [texts(column) for column in columns]) == columns


@settings(max_examples=5, deadline=None)
@given(columns=st.lists(_NUMBERS, min_size=40, max_size=40))
def test_any_numbers_come_back_as_they_were(columns: list[list[int | None]]) -> None:
    assert _read("bigint", [numbers(column) for column in columns]) == columns


def test_truth_values_come_back_as_they_were() -> None:
    column = [True, False, None]
    assert _read("boolean", [numbers(column)]) == [column]


def test_a_call_casts_its_columns_and_leaves_the_rest() -> None:
    call = Call("s.f", "bigint", "text[]", "boolean", "integer[]")
    assert call.statement == "select * from s.f($1, $2::text::text[], $3, $4::text::integer[])"
    assert call.values([7, ["a"], True, [1, 2]]) == [7, '{"a"}', True, "{1,2}"]
