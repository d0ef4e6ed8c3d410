"""Events that a server sends on one answer (SSE), as they come: only what they carry is of interest here."""

from headway.model.errors import HeadwayError

LONGEST_LINE = 1024 * 1024


class LineTooLong(HeadwayError):
    """A line that does not end."""

    code = "line_too_long"


class EventStream:
    """Takes bytes in whatever pieces they come, and gives the data of each event that is whole."""

    def __init__(self) -> None:
        self._rest = bytearray()
        """A line that has not ended yet."""
        self._data: list[bytes] = []

    def take(self, piece: bytes) -> list[bytes]:
        """The data of the events that end in this piece."""
        self._rest += piece
        lines: list[bytes] = []
        if b"\n" in piece:
            *lines, rest = bytes(self._rest).split(b"\n")
            self._rest = bytearray(rest)
        if len(self._rest) > LONGEST_LINE:
            raise LineTooLong(f"a line of the stream has more than {LONGEST_LINE:,} bytes")
        events = [self._line(line.removesuffix(b"\r")) for line in lines]
        return [event for event in events if event is not None]

    def end(self) -> list[bytes]:
        """The last event, where the server forgot the empty line behind it."""
        last = bytes(self._rest).removesuffix(b"\r")
        self._rest.clear()
        if last:
            self._line(last)
        event = self._line(b"")
        return [] if event is None else [event]

    def _line(self, line: bytes) -> bytes | None:
        """An empty line ends an event; comments and other fields than `data` say nothing here."""
        if not line:
            event, self._data = self._data, []
            return b"\n".join(event) if event else None
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
        return None
