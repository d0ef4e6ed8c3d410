"""What goes on beside a server while its door is open."""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import TextIO, TypeAlias

Company: TypeAlias = Callable[[], Coroutine[object, object, None]]
"""Something that goes on while the door is open, and ends when it is cancelled."""


@dataclass(frozen=True)
class Show:
    """What goes on beside a server, and how it is shown. An ordinary server has none of it."""

    company: Sequence[Company] = ()
    hints: Sequence[str] = ()
    log_stream: TextIO | None = None
    """Where the log goes instead of stderr."""
