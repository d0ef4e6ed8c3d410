"""Which addresses of the internet a server may be sent to by whoever asks it for work (T-4).

A caller names where it wants to be told. Without these rules it could have Headway post to what only Headway can
reach: this machine, the network around it, the service that gives machines their credentials.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address

# Written out from the registries of IANA: `is_global` means something else from one Python to the next.
_NOT_PUBLIC_4 = tuple(
    (IPv4Network(network), what)
    for network, what in (
        ("0.0.0.0/8", "of this machine"),
        ("10.0.0.0/8", "of a private network"),
        ("100.64.0.0/10", "of a provider's own network"),
        ("127.0.0.0/8", "of this machine"),
        ("168.63.129.16/32", "of a cloud's own services"),
        ("169.254.0.0/16", "of the local link"),
        ("172.16.0.0/12", "of a private network"),
        ("192.0.0.0/24", "reserved"),
        ("192.0.2.0/24", "reserved for examples"),
        ("192.88.99.0/24", "reserved"),
        ("192.168.0.0/16", "of a private network"),
        ("198.18.0.0/15", "reserved for measurements"),
        ("198.51.100.0/24", "reserved for examples"),
        ("203.0.113.0/24", "reserved for examples"),
        ("224.0.0.0/4", "of many machines"),
        ("240.0.0.0/4", "reserved"),
    )
)
_PUBLIC_6 = IPv6Network("2000::/3")
_NOT_PUBLIC_6 = tuple(
    (IPv6Network(network), what)
    for network, what in (
        # Those that hold an address of IPv4: where they lead is decided on the way.
        ("::ffff:0:0/96", "one of IPv4 in disguise"),
        ("64:ff9b::/96", "one of IPv4 in disguise"),
        ("64:ff9b:1::/48", "one of IPv4 in disguise"),
        ("2001::/32", "one of IPv4 in disguise"),
        ("2002::/16", "one of IPv4 in disguise"),
        ("::/127", "of this machine"),
        ("2001::/23", "reserved"),
        ("2001:db8::/32", "reserved for examples"),
        ("3fff::/20", "reserved for examples"),
        ("fc00::/7", "of a private network"),
        ("fe80::/10", "of the local link"),
        ("ff00::/8", "of many machines"),
    )
)


def not_public(address: Address) -> str:
    """What the address is, if it is not one of the public internet; empty if it is."""
    if isinstance(address, IPv4Address):
        return next((what for network, what in _NOT_PUBLIC_4 if address in network), "")
    known = next((what for network, what in _NOT_PUBLIC_6 if address in network), "")
    return known or ("" if address in _PUBLIC_6 else "reserved")


def read_address(text: str) -> Address | None:
    """The address that a text is, as everybody writes it. None: it is a name, or written oddly."""
    if "%" in text:
        return None
    try:
        return ip_address(text)
    except ValueError:
        return None


def read_odd_address(host: str) -> IPv4Address | None:
    """The address that the C library makes of `127.1`, `0x7f000001`, `2130706433` or `0177.0.0.1`.

    These are names for whoever does not know better, and an address for whoever connects.
    """
    numbers = [_number(part) for part in host.removesuffix(".").split(".")]
    if len(numbers) > 4 or not all(number is not None for number in numbers):
        return None
    *leading, last = [number for number in numbers if number is not None]
    if any(number > 255 for number in leading) or last >= 256 ** (4 - len(leading)):
        return None
    value = last
    for place, number in enumerate(leading):
        value += number << (8 * (3 - place))
    return IPv4Address(value)


def _number(part: str) -> int | None:
    """A part of an address: decimal, octal with a leading 0, or hexadecimal with 0x."""
    if not part.isascii() or not part.isalnum():
        return None
    try:
        if part[:2] in {"0x", "0X"}:
            return int(part[2:] or "0", 16)
        return int(part, 8 if part[0] == "0" else 10)
    except ValueError:
        return None
