"""Taking a port: for whom, and what is said when it cannot be had."""

import socket

import pytest

from headway import InvalidInput
from headway.cli.serve.addresses import CannotListen, is_local, reachable, shown, take


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost", "::1"])
def test_o4_addresses_that_only_this_machine_reaches(host: str) -> None:
    assert is_local(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7"])
def test_o4_addresses_that_others_may_reach(host: str) -> None:
    assert not is_local(host)


def test_any_free_port_is_taken_and_listened_on_at_once() -> None:
    sockets = take("127.0.0.1", 0)
    try:
        port = sockets[0].getsockname()[1]
        assert port > 0
        # Else answers in two pieces would take 40 ms longer on asyncio's own loop.
        assert all(each.proto == socket.IPPROTO_TCP for each in sockets)
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            pass
    finally:
        for each in sockets:
            each.close()


def test_a_name_with_several_addresses_gets_one_port_for_all() -> None:
    sockets = take("localhost", 0)
    try:
        assert len({each.getsockname()[1] for each in sockets}) == 1
    finally:
        for each in sockets:
            each.close()


def test_a_port_that_is_taken_is_named() -> None:
    (first,) = take("127.0.0.1", 0)
    with first:
        port = first.getsockname()[1]
        with pytest.raises(CannotListen) as refusal:
            take("127.0.0.1", port)
    assert f"127.0.0.1:{port}: another program listens there" in str(refusal.value)
    assert "--port" in str(refusal.value)


def test_a_port_that_was_just_used_can_be_taken_again() -> None:
    """After a kill -9 the kernel keeps the old connections for a while: that is no reason to wait."""
    (first,) = take("127.0.0.1", 0)
    port = first.getsockname()[1]
    with socket.create_connection(("127.0.0.1", port), timeout=5):
        first.setblocking(True)
        accepted, _ = first.accept()
        accepted.close()
        first.close()
        (again,) = take("127.0.0.1", port)
        again.close()


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(CannotListen, match="this machine does not have that address"):
        take("192.0.2.7", 0)


def test_a_name_that_means_nothing_is_refused() -> None:
    with pytest.raises(InvalidInput, match="--host"):
        take("no such host!", 0)


def test_how_addresses_are_shown() -> None:
    assert shown("127.0.0.1", 80) == "127.0.0.1:80"
    assert shown("::1", 80) == "[::1]:80"
    assert reachable("0.0.0.0") == "127.0.0.1"
    assert reachable("::") == "::1"
    assert reachable("localhost") == "localhost"
