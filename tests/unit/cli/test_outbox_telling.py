"""Letters in words: a callback shows where it goes and how its task ended, and no secret."""

import httpx
import msgspec
import pytest

from headway.cli.outbox import letters_table
from headway.core.callback_url import CALLBACK
from headway.model.places import Delivery
from headway.model.run import Route, RunId, SessionKey
from headway.model.time import MINUTE, SECOND
from headway.wire.outbox import letter_answer
from tests.unit.cli.calling import Shell


def dead(route: Route, text: str) -> Delivery:
    error = "WebhookFailed: https://hook.example answered 503"
    session = SessionKey("run:r1")
    return Delivery("r1.callback", route, text, RunId("r1"), session, 1, tries=7, error=error)


def shown(delivery: Delivery) -> str:
    return letters_table([letter_answer(delivery)], 5 * MINUTE)


def test_t4_a_callback_shows_where_to_why_not_and_how_often() -> None:
    to = Route(CALLBACK, peer="https://hook.example/tasks?token=s3cret")
    notice = {"state": "failed", "reason": "timed_out", "error": "took too long", "text": ""}
    said = shown(dead(to, msgspec.json.encode(notice).decode()))
    assert "https://hook.example/tasks" in said
    assert "s3cret" not in said
    assert "failed/timed_out: took too long" in said
    assert "answered 503" in said
    assert " 7 " in said
    assert "s3cret" not in msgspec.json.encode(letter_answer(dead(to, "{}"))).decode()


def test_t4_what_waits_says_when_it_is_tried_next() -> None:
    failed = dead(Route("web", peer="42"), "hello")
    head, given_up = (line.split() for line in shown(failed).splitlines())
    assert head == ["letter", "state", "to", "run", "since", "tries", "next", "error", "text"]
    assert given_up[:7] == ["r1.callback", "dead", "web:42", "r1", "5m", "7", "-"]
    waits = msgspec.structs.replace(failed, due_at=5 * MINUTE + 30 * SECOND)
    assert "  waiting  web:42  r1   5m         7  in 30s  WebhookFailed: " in shown(waits)
    assert "  now  " in shown(msgspec.structs.replace(failed, due_at=5 * MINUTE))


@pytest.mark.parametrize(
    ("flags", "state"),
    [
        ((), "all"),
        (("--waiting",), "waiting"),
        (("--dead",), None),
        (("--dead", "--waiting"), "all"),
    ],
)
def test_t4_the_whole_outbox_is_listed_unless_a_part_is_asked_for(
    flags: tuple[str, ...], state: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str | None] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.params.get("state"))
        return httpx.Response(200, json={"letters": []})

    monkeypatch.setattr(
        httpx.AsyncHTTPTransport,
        "handle_async_request",
        httpx.MockTransport(answer).handle_async_request,
    )
    assert Shell("").ok("outbox", "list", *flags).out == "nothing\n"
    assert asked == [state], "the default of the server is what was given up"


def test_a_notice_that_is_none_is_shown_as_it_is() -> None:
    assert "not json" in shown(dead(Route(CALLBACK, peer="nonsense"), "not json"))


def test_a_reply_is_shown_with_its_channel() -> None:
    said = shown(dead(Route("telegram", peer="42"), '{"state": "x"}'))
    assert "telegram:42" in said
    assert '{"state": "x"}' in said
