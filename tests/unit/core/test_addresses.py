"""Which addresses may be told by whoever asks for work (T-4)."""

from ipaddress import ip_address

import pytest

from headway.core.addresses import not_public, read_address, read_odd_address


@pytest.mark.parametrize(
    "address",
    [
        *("0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1"),
        *("127.255.255.254", "168.63.129.16", "169.254.169.254", "172.16.0.1", "172.31.255.255"),
        *("192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.19.255.255"),
        *("198.51.100.7", "203.0.113.9", "224.0.0.1", "239.255.255.255", "240.0.0.1"),
        "255.255.255.255",
        *("::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "64:ff9b::7f00:1"),
        *("64:ff9b::808:808", "64:ff9b:1::1", "100::1", "2001::1", "2001:0:808:808::1"),
        *("2001:2::1", "2001:10::1", "2001:db8::1", "2002:7f00:1::", "2002:808:808::1", "3fff::1"),
        *("5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1"),
    ],
)
def test_t4_an_address_that_is_not_public_is_told_by_what_it_is(address: str) -> None:
    assert not_public(ip_address(address))


@pytest.mark.parametrize(
    "address",
    [
        *("1.1.1.1", "8.8.8.8", "11.0.0.1", "100.63.255.255", "100.128.0.1", "128.0.0.1"),
        *("169.253.255.255", "172.15.255.255", "172.32.0.1", "192.0.1.1", "192.167.255.255"),
        *("198.17.255.255", "198.20.0.1", "223.255.255.255", "168.63.129.15"),
        *("2606:4700:4700::1111", "2001:4860:4860::8888", "2a00:1450::1", "2001:200::1"),
    ],
)
def test_t4_what_is_next_to_the_ranges_is_public(address: str) -> None:
    assert not_public(ip_address(address)) == ""


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::1", "::1"),
        ("example.com", None),
        ("fe80::1%eth0", None),
        ("0x7f.1", None),
        ("127.1", None),
        ("0177.0.0.1", None),
        ("2130706433", None),
    ],
)
def test_an_address_is_read_only_as_everybody_writes_it(host: str, address: str | None) -> None:
    assert read_address(host) == (None if address is None else ip_address(address))


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("2130706433", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"),
        ("0x7f.1", "127.0.0.1"),
        ("0X7F.1.", "127.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("127.0.1", "127.0.0.1"),
        ("0177.0.0.01", "127.0.0.1"),
        ("017700000001", "127.0.0.1"),
        ("0", "0.0.0.0"),
        ("0x", "0.0.0.0"),
        ("10.65535", "10.0.255.255"),
        ("127.0.0.1.", "127.0.0.1"),
        ("4294967296", None),
        ("256.1", None),
        ("1.2.3.256", None),
        ("1.2.3.4.5", None),
        ("08.1", None),
        ("1..2", None),
        ("0xg.1", None),
        ("example.com", None),
        ("cafe", None),
        ("1.2.3.4a", None),
        ("-1", None),
        ("", None),
    ],
)
def test_t4_odd_spellings_are_read_as_the_c_library_reads_them(
    host: str, address: str | None
) -> None:
    assert read_odd_address(host) == (None if address is None else ip_address(address))
