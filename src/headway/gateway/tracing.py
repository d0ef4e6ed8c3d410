"""The caller's trace, continued: W3C Trace Context, and the ids of requests."""

import re

_TRACEPARENT = re.compile(rb"00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_NOWHERE = (b"0" * 32, b"0" * 16)
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._~:+/=-]{1,128}")


def read_traceparent(header: bytes | None) -> str:
    """What the header says, or nothing: one that is malformed counts as absent, as the standard wants."""
    if header is None or not _TRACEPARENT.fullmatch(header):
        return ""
    _, trace, parent, _ = header.split(b"-")
    if trace == _NOWHERE[0] or parent == _NOWHERE[1]:
        return ""
    return header.decode("ascii")


def is_request_id(header: bytes) -> bool:
    """Whether a caller's own id may be written into answers and logs."""
    return _REQUEST_ID.fullmatch(header) is not None
