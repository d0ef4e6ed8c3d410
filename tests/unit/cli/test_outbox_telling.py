"""Letters in words: a callback shows where it goes and how its task ended, and no secret."""

import msgspec

from headway.cli.outbox import letters_table
from headway.core.callback_url import CALLBACK
from headway.model.places import Delivery
from headway.model.run import Route, RunId, SessionKey
from headway.model.time import MINUTE
from headway.wire.outbox import letter_answer


def dead(route: Route, text: str) -> Delivery:
    error = "WebhookFailed: https://hook.example answered 503"
    session = SessionKey("run:r1")
    return Delivery("r1.callback", route, text, RunId("r1"), session, 1, tries=7, error=error)


def shown(delivery: Delivery) -> str:
    return letters_table([letter_answer(delivery, "dead")], 5 * MINUTE)


def test_t4_a_callback_shows_where_to_why_not_and_how_often() -> None:
    to = Route(CALLBACK, peer="https://hook.example/tasks?token=s3cret")
    notice = {"state": "failed", "reason": "timed_out", "error": "took too long", "text": ""}
    said = shown(dead(to, msgspec.json.encode(notice).decode()))
    assert "https://hook.example/tasks" in said
    assert "s3cret" not in said
    assert "failed/timed_out: took too long" in said
    assert "answered 503" in said
    assert " 7 " in said
    assert "s3cret" not in msgspec.json.encode(letter_answer(dead(to, "{}"), "dead")).decode()


def test_a_notice_that_is_none_is_shown_as_it_is() -> None:
    assert "not json" in shown(dead(Route(CALLBACK, peer="nonsense"), "not json"))


def test_a_reply_is_shown_with_its_channel() -> None:
    said = shown(dead(Route("telegram", peer="42"), '{"state": "x"}'))
    assert "telegram:42" in said
    assert '{"state": "x"}' in said
