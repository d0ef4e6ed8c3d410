"""The address that a caller wants to be told at (T-4): what can be said of it without asking anybody.

It is taken apart here, once and strictly, and the parts are what is resolved and connected to. Two readings of one
address are how checks are got around.
"""

import re

from headway.core.addresses import read_address
from headway.model.errors import InvalidInput
from headway.model.value import Value

CALLBACK = "headway.callback"
"""The channel of callbacks: the route's `peer` is the address. No other channel can be called so."""

MAX_URL = 2048
_URL = re.compile(
    r"(?P<scheme>https?)://"
    r"(?P<host>\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9_.-]{1,253})"
    r"(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<target>[/?][\x21-\x7e]*)?",
    # Without ASCII the Kelvin sign would be a K.
    re.IGNORECASE | re.ASCII,
)
_ALLOWED = (
    f"an address such as https://example.com/hook: http or https, a host, at most {MAX_URL} "
    "characters of ASCII, no user name"
)
_PORTS = {"http": 80, "https": 443}


class CallbackUrl(Value, frozen=True):
    """An address, taken apart."""

    scheme: str
    host: str
    """A name or an address, without brackets."""
    port: int
    target: str
    """The path and the query, as they are sent."""

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """Where it goes, without what may be secret."""
        return f"{self.scheme}://{self.host_header}"

    @property
    def shown(self) -> str:
        """The address without its query, where secrets are."""
        return self.origin + self.target.partition("?")[0]


def read_callback_url(value: object, field: str) -> CallbackUrl:
    """The address, or an error that shows nothing of it but the field: it may hold a secret."""
    if not isinstance(value, str) or len(value) > MAX_URL:
        raise InvalidInput(field, "…", _ALLOWED)
    found = _URL.fullmatch(value.partition("#")[0])
    if found is None:
        raise InvalidInput(field, "…", _ALLOWED)
    scheme, host = found["scheme"].lower(), found["host"].lower()
    port = int(found["port"] or _PORTS[scheme])
    if host.startswith("["):
        host = host[1:-1]
        if ":" not in host or read_address(host) is None:
            raise InvalidInput(field, "…", _ALLOWED)
    elif not host.strip(".") or ".." in host:
        raise InvalidInput(field, "…", _ALLOWED)
    if not 0 < port < 65536:
        raise InvalidInput(field, "…", _ALLOWED)
    target = found["target"] or "/"
    return CallbackUrl(scheme, host, port, target if target[0] == "/" else f"/{target}")


def check_callback_url(value: object, field: str) -> str:
    """The text of an address that can be one."""
    read_callback_url(value, field)
    assert isinstance(value, str)
    return value


def shown_url(url: str) -> str:
    """An address as it may be shown to others than whoever gave it."""
    try:
        return read_callback_url(url, "url").shown
    except InvalidInput:
        return "…"
