"""A server's refusals, made into errors again: by family, and of their very kind where it is known."""

import json

import pytest

from headway.cli.exits import exit_code
from headway.client.errors import error_of
from headway.client.line import checked
from headway.model.errors import (
    Draining,
    HeadwayError,
    InvalidInput,
    JobNotFound,
    NotFound,
    QueueFull,
    Refused,
    Unavailable,
)


def told(status: int, code: str, *, retryable: bool = False, **details: object) -> HeadwayError:
    body = {"error": "so it is", "code": code, "retryable": retryable, "details": details}
    return error_of(status, json.dumps(body).encode(), "2")


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (told(404, "not_found", run="r1"), NotFound, 2),
        (told(404, "job_not_found", job="j1"), JobNotFound, 2),
        (told(404, "not_found", lane="x"), Refused, 2),
        (told(400, "invalid_input", field="deadline", allowed="a time"), InvalidInput, 2),
        (told(403, "forbidden"), Refused, 2),
        (
            told(429, "queue_full", retryable=True, run="r", state="rejected", reason="queue_full"),
            QueueFull,
            2,
        ),
        (
            told(503, "draining", retryable=True, run="r", state="cancelled", reason="draining"),
            Draining,
            3,
        ),
        (told(503, "store_unavailable", retryable=True), Unavailable, 3),
        (told(429, "rate_limited", retryable=True), Unavailable, 3),
        (told(500, "internal_error"), HeadwayError, 1),
    ],
)
def test_t2_each_refusal_is_of_its_family(
    error: HeadwayError, kind: type[HeadwayError], code: int
) -> None:
    assert isinstance(error, kind)
    assert exit_code(error) == code


def test_the_text_is_that_of_the_server() -> None:
    assert str(told(400, "invalid_input", field="a")) == "so it is"
    assert str(told(503, "x", retryable=True)) == "so it is"
    assert str(told(404, "not_found", run="t1")) == "so it is"


def test_what_is_no_headway_server_is_said() -> None:
    error = error_of(502, b"<html>Bad Gateway</html>", url="http://front")
    assert "at http://front, no Headway server: 502" in str(error)
    assert exit_code(error) == 3, "the server behind the proxy may come back"
    foreign = error_of(404, b"<!DOCTYPE html>\n<title>nope</title>", url="http://else")
    assert str(foreign) == (
        "what answers at http://else is no Headway server: 404 and a page for browsers; "
        "name another with --server or HEADWAY_SERVER"
    )
    assert exit_code(foreign) == 2
    assert "server: 404 {'detail': 1}; name" in str(error_of(404, b"{'detail':\n 1}"))
    assert "server: 404; name" in str(error_of(404, b"\x00\x01"))


@pytest.mark.parametrize(
    "url", ["localhost", "ftp://x", "ann:x@host", "", "http://", "http://[::1"]
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="--server"):
        checked(url)


@pytest.mark.parametrize("short", ["127.0.0.1:8901", "localhost:8901/", "[::1]:8901"])
def test_a_host_and_its_port_are_an_address(short: str) -> None:
    assert checked(short) == f"http://{short.rstrip('/')}"


def test_a_slash_at_the_end_of_an_address_is_not_needed() -> None:
    assert checked("https://headway.example/base/") == "https://headway.example/base"
