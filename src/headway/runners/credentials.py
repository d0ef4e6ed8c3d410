"""What an endpoint is told of who asks: headers and tokens, as the configuration says them, or as `env:NAME`."""

import os
import re
from collections.abc import Mapping

from headway.model.errors import InvalidInput
from headway.model.runner import FROM_ENVIRONMENT

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OURS = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "idempotency-key",
        "traceparent",
        "transfer-encoding",
        "x-agent-id",
        "x-headway-deadline",
        "x-headway-fence",
        "x-request-id",
    }
)
"""Headers that say what the configuration cannot know."""


def headers_of(said: Mapping[str, str], field: str = "headers") -> dict[str, str]:
    """Headers by their names in small letters, checked. Their values are not shown: they may be secret."""
    headers: dict[str, str] = {}
    for name, value in said.items():
        if _NAME.fullmatch(name) is None:
            raise InvalidInput(field, name, "names of headers, such as X-Team")
        if name.lower() in _OURS:
            raise InvalidInput(field, name, "other headers: Headway itself says this one")
        headers[name.lower()] = taken = _taken(value, f"{field}.{name}")
        if not _is_printable(taken):
            raise InvalidInput(f"{field}.{name}", "…", "printable ASCII characters")
    return headers


def token_of(said: str, field: str, headers: Mapping[str, str]) -> str:
    """A token, checked; a line end behind one is the usual mistake."""
    token = _taken(said, field)
    if not _is_printable(token) or " " in token:
        raise InvalidInput(field, "…", "printable ASCII characters, without a space or a line end")
    if token and "authorization" in headers:
        raise InvalidInput(field, "…", "empty: the headers say `Authorization` already")
    return token


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}


def _taken(said: str, field: str) -> str:
    """The value itself, or that of the variable which it names."""
    if not said.startswith(FROM_ENVIRONMENT):
        return said
    try:
        return os.environ[said.removeprefix(FROM_ENVIRONMENT)]
    except KeyError:
        raise InvalidInput(field, said, "a variable that is set") from None


def _is_printable(text: str) -> bool:
    return text.isascii() and text.isprintable() and text == text.strip()
