"""The settings of a server: where it listens, what it lets in, what it writes down."""

from typing import Annotated

from msgspec import Meta

from headway.model.bounds import Length, Positive
from headway.model.time import MINUTE, SECOND
from headway.model.value import Value
from headway.model.words import LogLevel

KIB = 1024
MIB = 1024 * KIB


class LogSettings(Value, frozen=True):
    """Where the log goes beside stderr, and how much of it is kept."""

    level: LogLevel = LogLevel.INFO
    """What is less than this is not written."""
    file: str = ""
    """Where the log goes beside stderr; empty: nowhere."""
    max_bytes: Positive = 10 * MIB
    """A file that has grown to this is put aside and begun anew."""
    keep: Positive = 5
    """How many files that were put aside are kept."""


class ServerSettings(Value, frozen=True):
    """Everything that can be set for `headway serve` beside the node's own settings."""

    host: str = "127.0.0.1"
    """The address that it listens at. Without tokens only this machine may ask, so only a local one is taken."""
    port: Annotated[int, Meta(ge=0, le=65_535)] = 8787
    """The port that it listens at; 0: any that is free."""
    cors_origins: tuple[str, ...] = ()
    """Origins whose pages may ask from a browser; `*` for all."""
    body_limit: Positive = MIB
    """The most bytes that a request may have."""
    max_connections: Positive = 1_000
    """How many connections are open at once; more are told to come later."""
    max_streams: Positive = 500
    """How many of them may be event streams or WebSockets."""
    requests_per_minute: Positive | None = None
    """How many requests each token may make; none: as many as it likes."""
    wait_limit: Length = MINUTE
    """The longest that a request may wait for its run."""
    event_memory: Positive = 10_000
    """How many of the latest events can be asked for again by whoever lost its connection."""
    stream_backlog: Positive = 2_000
    """A listener that is so many events behind is cut off."""
    send_within: Length = 30 * SECOND
    """A listener that takes nothing for so long is cut off."""
    log: LogSettings = LogSettings()
