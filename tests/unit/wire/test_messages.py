"""How long the caller of a message waits."""

import pytest

from headway.model.errors import InvalidInput
from headway.model.time import MILLISECOND, MINUTE, SECOND
from headway.wire.messages import read_wait


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("30", 30 * SECOND),
        ("1.5", 1_500 * MILLISECOND),
        ("500ms", 500 * MILLISECOND),
        ("2m", 2 * MINUTE),
    ],
)
def test_seconds_and_durations_are_read(text: str, length: int) -> None:
    assert read_wait(text) == length


@pytest.mark.parametrize("text", ["banana", "", "-1", "1h", "30\n", "٣0"])
def test_t2_anything_else_is_refused_in_words(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"wait: .* it must be seconds, or a duration"):
        read_wait(text)
