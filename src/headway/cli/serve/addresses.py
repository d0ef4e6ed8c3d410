"""Taking a port: which addresses a name stands for, whether only this machine reaches them, and what is wrong."""

import errno
import ipaddress
import socket
import sys
from collections.abc import Iterable
from contextlib import ExitStack

from headway.model.errors import InvalidInput, Refused

_BACKLOG = 1_024
_NOT_HERE = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})
"""What a machine says about an address of a kind that it does not have, such as IPv6."""
_REASONS = {
    errno.EADDRINUSE: "another program listens there",
    errno.EACCES: "this user may not listen there: ports below 1024 are for root",
    errno.EADDRNOTAVAIL: "this machine does not have that address",
}


class CannotListen(Refused):
    """The address cannot be listened on."""

    code = "cannot_listen"

    def __init__(self, host: str, port: int, reason: str) -> None:
        self.host = host
        self.port = port
        self.reason = reason
        advice = "choose another with --port (0: any that is free) or --host"
        super().__init__(f"{shown(host, port)}: {reason}; {advice}")


def is_local(host: str) -> bool:
    """Whether only programs on this machine reach it there."""
    return all(ipaddress.ip_address(where).is_loopback for _, where in _addresses(host))


def take(host: str, port: int) -> tuple[socket.socket, ...]:
    """Sockets that listen on every address of the host, all on one port; 0 takes any that is free.

    They listen at once, so that nobody else can have the port: who connects before the server is ready waits.
    """
    with ExitStack() as unless_all_well:
        taken: list[socket.socket] = []
        away: OSError | None = None
        for family, where in _addresses(host):
            try:
                listening = _listening(family, where, port)
            except OSError as wrong:
                if wrong.errno not in _NOT_HERE:
                    raise _refusal(host, port, wrong) from None
                away = wrong
                continue
            unless_all_well.callback(listening.close)
            taken.append(listening)
            port = listening.getsockname()[1]
        if not taken:
            raise _refusal(host, port, away or OSError(errno.EADDRNOTAVAIL, ""))
        unless_all_well.pop_all()
        return tuple(taken)


def shown(host: str, port: int) -> str:
    """As it stands in an address on the web."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def reachable(host: str) -> str:
    """What to call the host from this machine: `0.0.0.0` is all of its addresses, and no address to ask."""
    first = ipaddress.ip_address(_addresses(host)[0][1])
    if not first.is_unspecified:
        return host
    return "127.0.0.1" if first.version == 4 else "::1"


def _addresses(host: str) -> list[tuple[int, str]]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (socket.gaierror, UnicodeError):
        allowed = "an address or a name of this machine, such as 127.0.0.1, ::1 or 0.0.0.0"
        raise InvalidInput("--host", host, allowed) from None
    return _once((int(family), str(place[0])) for family, _, _, _, place in found)


def _once(addresses: Iterable[tuple[int, str]]) -> list[tuple[int, str]]:
    return list(dict.fromkeys((family, where.partition("%")[0]) for family, where in addresses))


def _listening(family: int, where: str, port: int) -> socket.socket:
    # Named as TCP, asyncio sends small pieces at once: head and body are written apart, and would wait 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if sys.platform != "win32":
            # What a killed server left behind in the kernel must not keep the next one out.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.bind((where, port))
        listening.listen(_BACKLOG)
        listening.setblocking(False)
    except BaseException:
        listening.close()
        raise
    return listening


def _refusal(host: str, port: int, wrong: OSError) -> CannotListen:
    number = wrong.errno or 0
    return CannotListen(host, port, _REASONS.get(number, wrong.strerror or str(wrong)))
