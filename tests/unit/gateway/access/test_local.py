"""Who may ask while there are no tokens (O-4): programs of this machine, and nobody by a trick."""

import pytest

from headway.gateway.access.local import is_local_host, is_loopback, refusal

LOCAL = {b"host": b"localhost:8787"}


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"])
def test_o4_loopback_is(address: str) -> None:
    assert is_loopback(address)
    assert refusal(LOCAL, address, ()) is None


@pytest.mark.parametrize(
    "address", ["10.0.0.1", "0.0.0.0", "8.8.8.8", "::", "::ffff:10.0.0.1", "x"]
)
def test_o4_anything_else_is_not(address: str) -> None:
    assert not is_loopback(address)
    assert "no tokens" in (refusal(LOCAL, address, ()) or "")


def test_o4_without_an_address_nobody_is_local() -> None:
    assert refusal(LOCAL, None, ()) is not None


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:80", "127.0.0.1:8787", "[::1]:8787", "[::1]", "127.0.0.1"]
)
def test_local_hosts(host: str) -> None:
    assert is_local_host(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "evil.example:8787",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "localhost:x",
        "[::1",
        "[::1]x",
        "[2001:db8::1]:80",
        "127.0.0.1@evil.example",
        "::1",
    ],
)
def test_o4_a_name_that_was_made_to_lead_here_is_refused(host: str) -> None:
    assert not is_local_host(host)
    assert refusal({b"host": host.encode()}, "127.0.0.1", ()) is not None


@pytest.mark.parametrize(
    "header", [b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-real-ip"]
)
def test_o4_what_a_proxy_passes_on_is_refused(header: bytes) -> None:
    assert refusal({**LOCAL, header: b"10.0.0.1"}, "127.0.0.1", ()) is not None


def test_o4_pages_from_elsewhere_may_not_ask() -> None:
    def asked_by(origin: bytes, *allowed: str) -> str | None:
        return refusal({**LOCAL, b"origin": origin}, "127.0.0.1", allowed)

    assert asked_by(b"http://localhost:8787") is None
    assert asked_by(b"http://localhost:3000") is not None
    assert asked_by(b"https://evil.example") is not None
    assert asked_by(b"null") is not None
    assert asked_by(b"https://app.example", "https://app.example") is None
    assert asked_by(b"https://app.example", "*") is not None
