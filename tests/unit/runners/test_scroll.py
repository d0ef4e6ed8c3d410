"""What is told of a pane from one look to the next: each line once (W-1)."""

from hypothesis import given
from hypothesis import strategies as st

from headway.runners.scroll import LOST, Scroll


def test_whole_lines_are_told_once() -> None:
    scroll = Scroll()
    assert scroll.news(["one"], ended=True) == "one\n"
    assert scroll.news(["one"], ended=True) == ""
    assert scroll.news(["one", "", "two"], ended=True) == "\ntwo\n"


def test_a_line_that_grows_is_told_as_it_grows() -> None:
    scroll = Scroll()
    assert scroll.news(["one", "he"], ended=False) == "one\nhe"
    assert scroll.news(["one", "hello"], ended=False) == "llo"
    assert scroll.news(["one", "hello you", "next"], ended=False) == " you\nnext"
    assert scroll.news(["one", "hello you", "next"], ended=False, last=True) == ""


def test_a_line_that_is_drawn_over_is_told_when_it_is_whole() -> None:
    scroll = Scroll()
    assert scroll.news(["10%"], ended=False) == "10%"
    assert scroll.news(["20%"], ended=False) == ""
    assert scroll.news(["100%"], ended=True) == "\n100%\n"


def test_a_line_that_is_drawn_over_is_told_at_the_last_look() -> None:
    scroll = Scroll()
    assert scroll.news(["10%"], ended=False) == "10%"
    assert scroll.news(["99%"], ended=False, last=True) == "\n99%"


def test_after_a_clear_only_what_is_new_is_told() -> None:
    scroll = Scroll()
    scroll.news(["one", "two", "three"], ended=True)
    assert scroll.news(["one", "new"], ended=True) == "new\n"
    assert scroll.news([], ended=True) == ""
    assert scroll.news(["again"], ended=True) == "again\n"


def test_lines_that_tmux_forgot_are_not_told_again() -> None:
    scroll = Scroll()
    scroll.news([str(n) for n in range(100)], ended=True)
    later = [str(n) for n in range(10, 105)]
    assert scroll.news(later, ended=True, full=True) == "100\n101\n102\n103\n104\n"


def test_a_gap_is_said() -> None:
    scroll = Scroll()
    scroll.news(["1", "2"], ended=True)
    assert scroll.news(["8", "9"], ended=True, full=True) == f"{LOST}8\n9\n"


@given(st.lists(st.text("abc", max_size=4), max_size=20), st.data())
def test_all_that_is_only_appended_is_told_as_it_is(lines: list[str], data: st.DataObject) -> None:
    """However often is looked, and wherever the cursor stands then."""
    text = "\n".join(lines)
    scroll, told = Scroll(), ""
    looks = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    for length in (*looks, len(text)):
        seen = text[:length]
        shown = seen.split("\n") if seen else []
        ended = not shown or shown[-1] == ""
        while shown and not shown[-1]:
            shown.pop()
        told += scroll.news(shown, ended=ended)
    assert told.rstrip("\n") == text.rstrip("\n")
