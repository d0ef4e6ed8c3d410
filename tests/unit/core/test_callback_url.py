"""The address of a callback, taken apart once and strictly (T-4)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.core.callback_url import MAX_URL, read_callback_url, shown_url
from headway.model.errors import InvalidInput


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("https://example.com", ("https", "example.com", 443, "/")),
        ("HTTPS://Example.COM/Hook?a=B", ("https", "example.com", 443, "/Hook?a=B")),
        ("http://example.com:8080/", ("http", "example.com", 8080, "/")),
        ("http://example.com?x=1", ("http", "example.com", 80, "/?x=1")),
        ("https://[2606:4700::1]:99/a", ("https", "2606:4700::1", 99, "/a")),
        ("http://1.2.3.4/a#part", ("http", "1.2.3.4", 80, "/a")),
        ("http://my_host.internal./x", ("http", "my_host.internal.", 80, "/x")),
    ],
)
def test_an_address_is_taken_apart(url: str, parts: tuple[str, str, int, str]) -> None:
    read = read_callback_url(url, "callback")
    assert (read.scheme, read.host, read.port, read.target) == parts


@pytest.mark.parametrize(
    "url",
    [
        *("", "example.com", "//example.com", "ftp://example.com", "file:///etc/passwd"),
        *("https://", "https:///x", "https://:443/", "http://user@example.com/"),
        *("http://user:pass@example.com/", "http://example.com:0/", "http://example.com:65536/"),
        *("http://example.com:x/", "http://example.com\\@evil.com/", "http://exa mple.com/"),
        *("http://example.com/a b", "http://example.com/\r\nX: y", "http://münchen.de/"),
        *("http://example.com/ü", "http://[::1", "http://[fe80::1%25eth0]/", "http://[1.2.3.4]/"),
        *(
            "http://[zz::1]/",
            "http://a..b/",
            "http://\u212a.example/",
            "http://./",
            "http://example.com%2f@x/",
            "gopher://x/",
        ),
        f"http://example.com/{'x' * MAX_URL}",
    ],
)
def test_t4_what_is_no_such_address_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read_callback_url(url, "callback")
    assert refused.value.field == "callback"
    assert refused.value.value == "…"


@pytest.mark.parametrize("value", [None, 7, b"https://example.com", ["https://example.com"]])
def test_only_a_text_is_an_address(value: object) -> None:
    with pytest.raises(InvalidInput):
        read_callback_url(value, "callback")


@given(st.text(max_size=80))
def test_any_text_is_an_address_or_refused(text: str) -> None:
    for url in (text, f"http://{text}", f"https://example.com/{text}"):
        try:
            read = read_callback_url(url, "callback")
        except InvalidInput:
            continue
        again = read_callback_url(f"{read.origin}{read.target}", "callback")
        assert again == read
        assert "@" not in read.origin
        assert read.target.isascii()
        assert read.target.isprintable()


def test_t4_what_is_shown_has_no_query() -> None:
    assert (
        shown_url("https://example.com:8443/hook?token=s3cret#x") == "https://example.com:8443/hook"
    )
    assert shown_url("http://example.com:80?token=s3cret") == "http://example.com/"
    assert shown_url("nothing of the kind ?token=s3cret") == "…"


def test_the_host_header_is_what_the_caller_wrote() -> None:
    assert read_callback_url("https://a.example:443/x", "f").host_header == "a.example"
    assert read_callback_url("https://a.example:80/x", "f").host_header == "a.example:80"
    assert read_callback_url("http://[::1]:81/x", "f").host_header == "[::1]:81"
