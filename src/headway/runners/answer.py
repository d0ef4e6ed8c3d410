"""An answer over HTTP: read up to a bound, and judged by its status (T-3, C-9)."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

import msgspec

from headway.model.errors import RateLimited, WorkFailed
from headway.model.outcome import Json, Reply
from headway.model.text import whole

if TYPE_CHECKING:
    from httpx import Response

HTTP_STATUS = "http_status"
TOO_LARGE = "answer_too_large"
BROKEN = "broken_answer"
BAD_ANSWER = "bad_answer"

_NOT_FOR_EVER = frozenset({408, 429})
_TAIL = 8 * 1024
"""So many bytes of a refusal are kept, the last ones."""
_TAIL_WITHIN_S = 5.0
_SHOWN = 1_600
"""So many characters of a refusal are shown with the error."""
_LONGEST_PAUSE_S = 10_000_000


class Answer:
    """What an endpoint says. Its body is read while it comes, and never more of it than may be."""

    def __init__(
        self, response: "Response", where: str, most: int, broken: type[Exception]
    ) -> None:
        self._response = response
        self.where = where
        """Who answers, without what may be secret in the address."""
        self._most = most
        self._broken = broken
        """What is raised when the connection ends before the answer does."""

    @property
    def media_type(self) -> str:
        said: str = self._response.headers.get("content-type", "")
        return said.partition(";")[0].strip().lower()

    async def need_success(self) -> None:
        """Raises what another status than a success means: not now, not so, or never."""
        status = self._response.status_code
        if 200 <= status < 300:
            self._need_plain()
            return
        body = await self._tail()
        details: dict[str, Json] = {"status": status, "body": body}
        location = self._response.headers.get("location")
        if location is not None:
            # It is not followed: whoever answers so could send the credentials anywhere.
            details["location"] = whole(location[:2_000])
        shown = body.strip()[-_SHOWN:]
        said = f"{self.where} answered {status}{f': {shown}' if shown else ''}"
        failed = WorkFailed(
            said,
            HTTP_STATUS,
            details,
            permanent=400 <= status < 500 and status not in _NOT_FOR_EVER,
        )
        pause_s = self._pause_s() if status == 429 else None
        if pause_s is not None:
            raise RateLimited(pause_s) from failed
        raise failed

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """The body as it comes. Raises when there is more of it than may be, or when it breaks off."""
        size = 0
        try:
            async for piece in self._raw():
                size += len(piece)
                if size > self._most:
                    raise self.too_large()
                yield piece
        except self._broken as wrong:
            reason = f"{type(wrong).__name__}: {wrong}"
            raise self.broken_off(reason) from wrong

    async def read(self) -> bytes:
        """All of the body. One that says at once that it is too large is not even begun."""
        length = self._response.headers.get("content-length", "")
        if length.isascii() and length.isdigit() and int(length[:20]) > self._most:
            raise self.too_large()
        body = bytearray()
        async for piece in self.pieces():
            body += piece
        return bytes(body)

    def _raw(self) -> AsyncIterator[bytes]:
        """The bytes as they are on the line; the transport of a test may have them already."""
        response = self._response
        return response.aiter_bytes() if response.is_stream_consumed else response.aiter_raw()

    def too_large(self) -> WorkFailed:
        """Not tried again: the endpoint has done its work, and would do it again."""
        most = self._most
        return WorkFailed(
            f"{self.where} answered with more than {most:,} bytes: raise `max_body`, or let it answer less",
            TOO_LARGE,
            {"status": self._response.status_code, "max_body": most},
            permanent=True,
        )

    def broken_off(self, reason: str) -> WorkFailed:
        return WorkFailed(
            f"{self.where} broke off its answer: {reason}", BROKEN, {"reason": reason}
        )

    def _need_plain(self) -> None:
        encoding = self._response.headers.get("content-encoding", "identity")
        if encoding.strip().lower() not in {"", "identity"}:
            raise WorkFailed(
                f"{self.where} answered in the encoding {encoding[:40]!r}, which was not asked for",
                BAD_ANSWER,
                {"status": self._response.status_code},
                permanent=True,
            )

    async def _tail(self) -> str:
        """The end of the body, as far as it may be read and comes soon: the status says the rest."""
        tail, size = b"", 0
        try:
            async with asyncio.timeout(_TAIL_WITHIN_S):
                async for piece in self._raw():
                    tail = (tail + piece)[-_TAIL:]
                    size += len(piece)
                    if size > self._most:
                        break
        except (TimeoutError, self._broken):
            pass
        return tail.decode(errors="replace")

    def _pause_s(self) -> int | None:
        """How long it asks to wait: seconds, or a date, which is compared with its own clock."""
        said: str = self._response.headers.get("retry-after", "").strip()
        if said.isascii() and said.isdigit():
            return min(max(int(said[:12]), 1), _LONGEST_PAUSE_S)
        try:
            until = parsedate_to_datetime(said)
            pause = until - parsedate_to_datetime(self._response.headers.get("date", ""))
        except (
            TypeError,
            ValueError,
        ):  # It is no date, or one has a time zone and the other has none.
            return None
        return min(max(round(pause.total_seconds()), 1), _LONGEST_PAUSE_S)


def parsed(body: bytes, media_type: str) -> Json:
    """A body as data if it is JSON, also where it does not say so, else as text."""
    if media_type.endswith("json") or body.lstrip()[:1] in {b"{", b"["}:
        try:
            data: Json = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
        else:
            return data
    return whole(body.decode(errors="replace"))


def reply_of(data: Json, path: str = "") -> Reply:
    """A text is the reply, nothing is an empty one, other values are data.

    With a path, the text that stands there is the reply; if none does, all of it is data.
    """
    if path:
        found = _at(data, path)
        if isinstance(found, str):
            return Reply(found)
    if isinstance(data, str):
        return Reply(data)
    return Reply(data=data)


def _at(data: Json, path: str) -> Json:
    """What stands at a path such as `choices.0.message.content`, or None."""
    for step in path.split("."):
        if isinstance(data, dict):
            data = data.get(step)
        elif isinstance(data, list) and step.isascii() and step.isdigit():
            index = int(step[:9])
            data = data[index] if index < len(data) else None
        else:
            return None
    return data
