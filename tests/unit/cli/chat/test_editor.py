"""The line that is typed: the keys that people expect from a shell, in whatever pieces they come."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.cli.chat.editor import END, INTERRUPT, Editor

LEFT, RIGHT, UP, DOWN = "\x1b[D", "\x1b[C", "\x1b[A", "\x1b[B"


def typed(*keys: str) -> Editor:
    editor = Editor()
    for key in keys:
        editor.feed(key)
    return editor


def test_enter_finishes_a_line() -> None:
    editor = Editor()
    assert editor.feed("hello\nwor") == ["hello"]
    assert (editor.text, editor.cursor) == ("wor", 3)
    assert editor.feed("ld\r") == ["world"]


@pytest.mark.parametrize(
    ("keys", "text", "cursor"),
    [
        ("abc\x7f", "ab", 2),
        (f"abc{LEFT}{LEFT}X", "aXbc", 2),
        (f"abc{LEFT}\x1b[3~", "ab", 2),
        (f"abc{LEFT}{RIGHT}{RIGHT}d", "abcd", 4),
        ("one two  \x17", "one ", 4),
        ("one\x15", "", 0),
        ("one\x01\x0b", "", 0),
        ("bc\x1b[Ha\x1b[F!", "abc!", 4),
        ("\x7f\x7f", "", 0),
        ("größe 🙂", "größe 🙂", 7),
        ("a\x1b\nb", "a\nb", 3),
        ("\x1b[200~two\r\nlines\x1b[201~", "two\nlines", 9),
        ("x\x1b[5~y\x00", "xy", 2),
    ],
)
def test_each_key_does_what_a_shell_does(keys: str, text: str, cursor: int) -> None:
    editor = typed(keys)
    assert (editor.text, editor.cursor) == (text, cursor)


def test_lines_before_are_recalled_and_what_was_begun_is_kept() -> None:
    editor = typed("one\ntwo\ndra")
    editor.feed(UP)
    assert editor.text == "two"
    editor.feed(UP + UP)
    assert editor.text == "one"
    editor.feed(DOWN + DOWN)
    assert editor.text == "dra"
    editor.feed(DOWN)
    assert editor.text == "dra"


def test_ctrl_c_clears_a_line_and_is_told_on_an_empty_one() -> None:
    editor = typed("abc")
    assert editor.feed("\x03") == []
    assert editor.text == ""
    assert editor.feed("\x03") == [INTERRUPT]


def test_ctrl_d_deletes_and_ends_on_an_empty_line() -> None:
    editor = typed("ab\x01")
    assert editor.feed("\x04") == []
    assert editor.text == "b"
    assert editor.feed("\x04\x04") == [END]


KEYS = st.sampled_from(
    ["a", "ü", " ", "\x7f", LEFT, RIGHT, UP, DOWN, "\n", "\x17", "\x1b[200~p\nq\x1b[201~"]
)


@given(st.lists(KEYS, max_size=20), st.data())
def test_the_pieces_in_which_keys_come_do_not_matter(keys: list[str], data: st.DataObject) -> None:
    whole = "".join(keys)
    at_once, in_pieces = Editor(), Editor()
    expected = at_once.feed(whole)
    found: list[str] = []
    while whole:
        size = data.draw(st.integers(1, len(whole)))
        found += in_pieces.feed(whole[:size])
        whole = whole[size:]
    assert found == expected
    assert (in_pieces.text, in_pieces.cursor) == (at_once.text, at_once.cursor)
