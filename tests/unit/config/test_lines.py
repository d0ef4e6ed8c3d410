"""Where in a file each key stands."""

import tomllib
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.config.layers import dotted
from headway.config.lines import lines_of

FILE = '''\
# A comment.
store = "x"

[server]  # the door
port = 1
"odd key" = """
port = 2
[not.a.table]
"""
origins = [
  "a",
  # still the list
  "b",
]

[agents."a.b"]
x.y = 1
t = { in = 1, out = { deep = 2 } }

[[things]]
name = 1
'''


def test_each_key_and_each_table_has_its_line() -> None:
    assert lines_of(FILE) == {
        ("store",): 2,
        ("server",): 4,
        ("server", "port"): 5,
        ("server", "odd key"): 6,
        ("server", "origins"): 10,
        ("agents",): 16,
        ("agents", "a.b"): 16,
        ("agents", "a.b", "x"): 17,
        ("agents", "a.b", "x", "y"): 17,
        ("agents", "a.b", "t"): 18,
        ("agents", "a.b", "t", "in"): 18,
        ("agents", "a.b", "t", "out"): 18,
        ("agents", "a.b", "t", "out", "deep"): 18,
        ("things",): 20,
        ("things", "name"): 21,
    }


def test_a_very_long_value_hides_only_what_is_below_it() -> None:
    text = "a = 1\nlong = [\n" + "1,\n" * 300 + "]\nb = 2\n"
    assert lines_of(text) == {("a",): 1}


names = st.text(
    st.characters(codec="utf-8", exclude_characters='"\\\n\r\x7f', min_codepoint=32), min_size=1
)


@given(st.lists(names, min_size=1, unique=True))
def test_every_key_of_a_flat_file_is_found(keys: list[str]) -> None:
    text = "\n".join(f"{dotted((key,))} = {number}" for number, key in enumerate(keys))
    assert list(_flat(tomllib.loads(text))) == [(key,) for key in keys]
    assert lines_of(text) == {(key,): number + 1 for number, key in enumerate(keys)}


def _flat(data: dict[str, object]) -> Iterator[tuple[str, ...]]:
    yield from ((name,) for name in data)


@pytest.mark.parametrize("text", ["", "\n\n", "# only this"])
def test_nothing_stands_nowhere(text: str) -> None:
    assert lines_of(text) == {}


def test_o2_lines_that_end_as_on_windows_are_the_same_lines() -> None:
    assert lines_of(FILE.replace("\n", "\r\n")) == lines_of(FILE)
