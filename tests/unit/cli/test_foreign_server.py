"""Commands that ask what is no Headway server, and mistakes that are told before a server is asked."""

import httpx
import pytest

from tests.unit.cli.calling import NO_SERVER, Shell


@pytest.mark.parametrize("status", [200, 404])
def test_what_is_no_headway_server_is_told_so(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def page(request: httpx.Request) -> httpx.Response:
        return httpx.Response(status, html="<!DOCTYPE html><title>Directory listing</title>")

    monkeypatch.setattr(
        httpx.AsyncHTTPTransport,
        "handle_async_request",
        httpx.MockTransport(page).handle_async_request,
    )
    told = Shell("").refused("runs", "list")
    assert f"what answers at {NO_SERVER} is no Headway server: {status} and a page" in told
    assert "DOCTYPE" not in told


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            ("jobs", "add", "tea", "--agent", "a", "--text", "tea", "--every", "6x"),
            "every: '6x' is not allowed; it must be a duration such as 500ms, 30s",
        ),
        (
            ("heartbeat", "set", "a", "--every", "1q"),
            "every: '1q' is not allowed; it must be a duration such as",
        ),
        (
            ("heartbeat", "set", "a", "--hours", "9-17"),
            "headway: hours: '9-17' is not allowed; it must be two times of day",
        ),
    ],
)
def test_t2_what_a_server_would_refuse_is_told_in_words(line: tuple[str, ...], said: str) -> None:
    assert said in Shell("").refused(*line)
