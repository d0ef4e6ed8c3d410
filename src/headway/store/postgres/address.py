"""Where the database is: a URL, and what of it is ours."""

import re
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from headway.model.errors import StoreRefused
from headway.model.value import Value

_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,39}")
_OURS = frozenset({"schema", "listen"})


class Address(Value, frozen=True):
    """A database, taken apart."""

    url: str
    """What the driver is given: without our own options."""
    listen: str
    """Where hints are heard: a direct connection, if a pooler stands before the other one."""
    schema: str
    shown: str
    """For people: never with the password."""


def address_of(url: str) -> Address:
    """Take a URL apart: `?schema=` and `?listen=` are ours, all else goes to the driver."""
    shown = _without_password(url)
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise StoreRefused(shown, f"not a URL: {error}") from None
    if parts.scheme not in {"postgres", "postgresql"}:
        raise StoreRefused(
            shown, "not the URL of a PostgreSQL", "write postgresql://user@host/database"
        )
    options = parse_qsl(parts.query, keep_blank_values=True)
    own = {name: value for name, value in options if name in _OURS}
    rest = [(name, value) for name, value in options if name not in _OURS]
    schema = own.get("schema", "headway")
    if not _SCHEMA.fullmatch(schema):
        advice = "use small letters, digits and _, at most 40"
        raise StoreRefused(shown, f"the schema {schema!r} is not a plain name", advice)
    plain = urlunsplit(parts._replace(query=urlencode(rest, quote_via=quote)))
    return Address(plain, own.get("listen", plain), schema, shown)


def _without_password(url: str) -> str:
    """User, host, port and database; options are left out, as they may hold a password too."""
    try:
        parts = urlsplit(url)
        host, port, user = parts.hostname or "", parts.port, parts.username or ""
    except ValueError:
        return "postgresql"
    place = f"{host}:{port}" if port else host
    return (
        f"postgresql://{unquote(user)}@{place}{parts.path}"
        if user
        else f"postgresql://{place}{parts.path}"
    )
