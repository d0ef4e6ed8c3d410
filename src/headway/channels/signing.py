"""How what is posted is signed, and how a receiver checks it."""

import hashlib
import hmac
from datetime import timedelta
from typing import Literal

from headway.model.errors import InvalidInput
from headway.model.time import SECOND, Instant, span
from headway.ports import Clock
from headway.runtime.clock import SystemClock

ID, TIMESTAMP, SIGNATURE = "X-Headway-Id", "X-Headway-Timestamp", "X-Headway-Signature"


def signed_headers(
    secret: str | bytes, delivery_id: str, body: bytes, now: Instant
) -> dict[str, str]:
    """The headers that name a body, date it, and prove who sent it."""
    timestamp = str(now // SECOND)
    return {ID: delivery_id, TIMESTAMP: timestamp, SIGNATURE: sign(secret, timestamp, body)}


def sign(secret: str | bytes, timestamp: str, body: bytes) -> str:
    """What `X-Headway-Signature` holds for a body that is sent at this time."""
    signed = timestamp.encode() + b"." + body
    return f"sha256={hmac.new(secret_bytes(secret), signed, hashlib.sha256).hexdigest()}"


def verify_signature(
    secret: str | bytes,
    timestamp: str,
    body: bytes,
    signature: str,
    *,
    within: str | timedelta | Literal[0] = "5m",
    clock: Clock | None = None,
) -> bool:
    """For receivers: whether this body was sent by one who knows the secret, and lately.

    `timestamp` and `signature` are the headers and `body` the bytes as they came. A copy of a letter that is
    replayed later than `within` is refused. How long the comparison takes tells nothing of the secret.
    """
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 15):
        return False
    expected = sign(secret, timestamp, body).encode()
    if not hmac.compare_digest(expected, signature.encode(errors="replace")):
        return False
    now = (SystemClock() if clock is None else clock).wall()
    return abs(now - int(timestamp) * SECOND) <= span(within, "within")


def secret_bytes(secret: str | bytes) -> bytes:
    written = secret.encode() if isinstance(secret, str) else secret
    if not written:
        raise InvalidInput("secret", "", "some words that only the receiver knows")
    return written
