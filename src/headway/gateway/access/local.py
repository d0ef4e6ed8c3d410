"""Without tokens only programs of this machine may ask (O-4), and no page that a browser of this machine shows.

A page from anywhere can make a browser send requests to this machine: either under its own name, which the origin
tells, or under a name of its own that it let point here, which the host tells. A proxy on this machine would make
everybody look local, so whatever was forwarded is refused.
"""

import ipaddress
from collections.abc import Collection, Mapping
from functools import lru_cache

_FORWARDED = (
    b"forwarded",
    b"via",
    b"x-forwarded-for",
    b"x-forwarded-host",
    b"x-forwarded-proto",
    b"x-real-ip",
)


def refusal(
    headers: Mapping[bytes, bytes], client: str | None, origins: Collection[str]
) -> str | None:
    """Why a request without tokens is not taken; None if it is."""
    if client is None or not is_loopback(client):
        return (
            "there are no tokens, so only this machine may ask; `headway tokens create` makes one"
        )
    for name in _FORWARDED:
        if name in headers:
            return f"the header {name.decode()} says that this was forwarded; that needs a token"
    host = headers.get(b"host", b"").decode("latin-1")
    if not is_local_host(host):
        return f"the host {host!r} is not this machine; that needs a token"
    origin = headers.get(b"origin")
    if origin is not None and not _is_allowed(origin.decode("latin-1"), host, origins):
        return f"pages of {origin.decode('latin-1')!r} may not ask; cors_origins allows some"
    return None


@lru_cache(maxsize=256)
def is_loopback(address: str) -> bool:
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = getattr(ip, "ipv4_mapped", None)
    return bool((mapped or ip).is_loopback)


@lru_cache(maxsize=256)
def is_local_host(host: str) -> bool:
    """Whether a `Host` names this machine: `localhost:8787`, `127.0.0.1`, `[::1]:8787`."""
    if host.startswith("["):
        name, bracket, port = host[1:].partition("]")
        if not bracket or not (port == "" or port.startswith(":")):
            return False
        port = port.removeprefix(":")
    else:
        name, _, port = host.partition(":")
    if port and not port.isdecimal():
        return False
    return name.lower() == "localhost" or is_loopback(name)


def _is_allowed(origin: str, host: str, origins: Collection[str]) -> bool:
    return origin == f"http://{host}" or origin in origins
