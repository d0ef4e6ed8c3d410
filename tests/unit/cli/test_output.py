"""What commands print and which number they end with: exit codes, tables, addresses."""

import pytest
import typer

from headway.cli.exits import errors_told, exit_code
from headway.cli.tables import bytes_text, table
from headway.config.secrets import without_password
from headway.model.errors import (
    Draining,
    HeadwayError,
    InvalidInput,
    InvariantBroken,
    QueueFull,
    StoreRefused,
    StoreUnavailable,
)
from headway.model.outcome import Outcome
from headway.model.words import Reason, State

_FULL = Outcome(State.REJECTED, Reason.QUEUE_FULL)
_DRAINING = Outcome(State.CANCELLED, Reason.DRAINING)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvariantBroken("a bug"), 1),
        (HeadwayError("of no family"), 1),
        (InvalidInput("store", "x", "y"), 2),
        (StoreRefused("sqlite:///x", "not a database"), 2),
        (QueueFull("r1", _FULL), 2),
        (StoreUnavailable("postgresql://h/d", "connection refused"), 3),
        (Draining("r1", _DRAINING), 3),
    ],
)
def test_each_family_of_errors_has_its_exit_code(
    error: HeadwayError, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(error) == code
    with pytest.raises(typer.Exit) as ended, errors_told():
        raise error
    assert ended.value.exit_code == code
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", f"headway: {error}\n")


def test_a_bug_is_shown_as_one() -> None:
    with pytest.raises(ZeroDivisionError), errors_told():
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann:secret@db:5432/x?y=1", "postgresql://ann:***@db:5432/x?y=1"),
        ("postgresql://ann:se@cret@db/x", "postgresql://ann:***@db/x"),
        ("postgresql://ann@db/x", "postgresql://ann@db/x"),
        ("sqlite:///a:b@c.db", "sqlite:///a:b@c.db"),
    ],
)
def test_a_password_is_never_shown(url: str, shown: str) -> None:
    assert without_password(url) == shown


def test_columns_line_up_and_numbers_stand_to_the_right() -> None:
    rows = [("web-1", "3", "alive"), ("w", "12", "")]
    assert table(("name", "runs", "state"), rows).splitlines() == [
        "name   runs  state",
        "web-1     3  alive",
        "w        12",
    ]


def test_words_that_happen_to_be_numbers_stand_to_the_left() -> None:
    assert table(("age", "what"), [("7", "42"), ("10", "7")]).splitlines()[1:] == [
        "  7  42",
        " 10  7",
    ]


def test_a_table_may_be_empty() -> None:
    assert table(("a", "b"), []) == "a  b"


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (3 << 20, "3.0 MiB"), (5 << 40, "5.0 TiB")],
)
def test_sizes_are_said_as_people_say_them(count: int, text: str) -> None:
    assert bytes_text(count) == text
