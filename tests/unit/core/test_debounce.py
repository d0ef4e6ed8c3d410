"""The window restarts with each message but is bounded (S-7)."""

from headway.core.debounce import Buffer
from headway.core.session import BLANK, SessionQueue
from headway.model.run import SessionKey
from headway.model.time import MILLISECOND

WINDOW = 800 * MILLISECOND


def open_window(limit: int = 5) -> Buffer:
    return Buffer(SessionQueue(SessionKey("s"), 0, BLANK), (), WINDOW * limit)


def test_s7_each_message_restarts_the_window() -> None:
    buffer = open_window()
    assert buffer.extend(0, WINDOW) == WINDOW
    assert buffer.extend(300 * MILLISECOND, WINDOW) == 1100 * MILLISECOND
    assert buffer.closes_at == 1100 * MILLISECOND


def test_s7_a_steady_stream_ends_at_five_windows() -> None:
    buffer = open_window()
    closes = [buffer.extend(now * MILLISECOND, WINDOW) for now in range(0, 4000, 500)]
    assert closes[-1] == 4000 * MILLISECOND
    assert max(closes) == 5 * WINDOW
