"""Where a callback would go, and whether it may go there (T-4)."""

import asyncio
import socket
import threading
from collections.abc import Sequence

import pytest

from headway.channels.reaching import Lookup, MayNotBeTold, Resolver, reach
from headway.core.callback_url import read_callback_url


def names(*addresses: str) -> Resolver:
    async def resolve(host: str, port: int) -> Sequence[str]:
        del host, port
        return addresses

    return resolve


async def nobody(host: str, port: int) -> Sequence[str]:
    raise AssertionError(f"{host}:{port} needs no server of names")


async def reached(url: str, resolve: Resolver, *, private: bool = False) -> list[str]:
    found = await reach(read_callback_url(url, "callback"), resolve, private=private, within_s=0.2)
    return [str(address) for address in found]


def refused(url: str, resolve: Resolver) -> str:
    with pytest.raises(MayNotBeTold) as wrong:
        asyncio.run(reached(url, resolve))
    return str(wrong.value)


def test_t4_a_host_is_resolved_to_all_of_its_addresses() -> None:
    found = asyncio.run(
        reached("https://example.com/x", names("1.1.1.1", "2606:4700::1", "1.1.1.1"))
    )
    assert found == ["1.1.1.1", "2606:4700::1"]


def test_t4_every_address_must_be_public() -> None:
    assert "private network" in refused("https://example.com/x", names("1.1.1.1", "10.0.0.1"))
    assert "this machine" in refused("https://example.com/x", names("::1"))
    assert "local link" in refused("https://example.com/x", names("fe80::1%eth0"))
    assert "disguise" in refused("https://example.com/x", names("::ffff:127.0.0.1"))


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "169.254.169.254", "10.1.2.3", "[::1]", "[::ffff:7f00:1]", "[64:ff9b::1]"),
        *("2130706433", "0x7f.1", "0177.0.0.1", "127.1", "0", "134744072", "127.0.0.1."),
    ],
)
def test_t4_addresses_in_any_spelling_are_refused(host: str) -> None:
    assert "public internet" in refused(f"http://{host}/", nobody)


@pytest.mark.parametrize(
    ("host", "address"),
    [("127.0.0.1", "127.0.0.1"), ("2130706433", "127.0.0.1"), ("[::1]", "::1")],
)
def test_t4_private_ones_are_allowed_if_that_is_set(host: str, address: str) -> None:
    assert asyncio.run(reached(f"http://{host}/", nobody, private=True)) == [address]
    assert asyncio.run(reached("http://a.example/", names("10.0.0.1"), private=True)) == [
        "10.0.0.1"
    ]


def test_t4_what_cannot_be_resolved_is_refused_within_a_bound() -> None:
    async def unknown(host: str, port: int) -> Sequence[str]:
        raise socket.gaierror(socket.EAI_NONAME, f"{host}:{port}")

    async def slow(host: str, port: int) -> Sequence[str]:
        await asyncio.sleep(60)
        return [f"{host}:{port}"]

    assert "none of this name" in refused("http://nowhere.example/", unknown)
    assert "took over 0.2 s" in refused("http://slow.example/", slow)
    assert "no addresses" in refused("http://empty.example/", names())
    assert "no addresses" in refused("http://odd.example/", names("not an address"))


def test_the_system_is_asked_in_threads_few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def getaddrinfo(host: str, port: int, **rest: object) -> list[tuple[object, ...]]:
        del rest
        asked.append(host)
        if host == "odd.example":
            raise UnicodeError("label too long")
        return [(socket.AF_INET, 1, 6, "", ("1.1.1.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)

    async def main() -> None:
        lookup = Lookup()
        many = [lookup(f"h{number}.example", 443) for number in range(100)]
        assert await asyncio.gather(*many) == [["1.1.1.1"]] * 100
        with pytest.raises(MayNotBeTold, match="none of this name"):
            await reached("http://odd.example/", lookup)

    asyncio.run(main())
    assert len(asked) == 101


def test_t4_names_whose_servers_do_not_answer_hold_up_no_other_domain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thread that waits for one cannot be ended, whoever has given it up: others must find some free."""
    answers = threading.Event()
    out: list[str] = []

    def getaddrinfo(host: str, port: int, **rest: object) -> list[tuple[object, ...]]:
        del rest
        if host.rstrip(".").endswith("slow.example"):
            out.append(host)
            answers.wait(30)
        return [(socket.AF_INET, 1, 6, "", ("1.1.1.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)

    async def main() -> None:
        lookup = Lookup()
        slow = [f"http://h{number}.SLOW.example{'.' * (number % 2)}/" for number in range(40)]
        given_up = await asyncio.gather(
            *(reached(url, lookup) for url in slow), return_exceptions=True
        )
        assert all(isinstance(each, MayNotBeTold) for each in given_up)
        assert len(out) == 4
        assert await reached("http://well.example/", lookup) == ["1.1.1.1"]
        answers.set()
        while lookup._shares:  # noqa: ASYNC110 - threads come back, and tell nobody here
            await asyncio.sleep(0.01)
        assert await reached(slow[0], lookup) == ["1.1.1.1"]

    try:
        asyncio.run(main())
    finally:
        answers.set()
