"""The channel `webhook`, against a real server on this machine."""

import asyncio
import hashlib
import hmac
import json
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta

import pytest
import uvloop

from headway import Headway, InvalidInput, Permanent, Turn
from headway.channels import WebhookChannel, WebhookFailed, sign, verify_signature
from headway.events import DeliveryFailed
from headway.ports import Channel
from tests.unit.channels.letters import CHAT, PICTURE, letter
from tests.unit.channels.receivers import (
    NOW_S,
    OK,
    SECRET,
    FixedClock,
    answer,
    play,
    receiver,
)
from tests.unit.runtime.worlds import hear, only


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_delivery_is_posted_as_json_and_signed(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def main() -> None:
        async with receiver(OK) as receiving:
            channel = WebhookChannel(receiving.url, SECRET, clock=FixedClock())
            assert isinstance(channel, Channel)
            await channel.send(letter("hällo\n😀", PICTURE))
            await channel.close()
        (post,) = receiving.posts
        assert post.line == "POST /hook/t0ken?x=1 HTTP/1.1"
        assert json.loads(post.body) == {
            "id": "run-1.reply",
            "channel": "chat",
            "account": "bot",
            "to": "42",
            "thread": "7",
            "text": "hällo\n😀",
            "attachments": [
                {
                    "name": "cat.png",
                    "mediaType": "image/png",
                    "url": "https://example.com/cat.png",
                }
            ],
            "runId": "run-1",
            "session": "chat:42",
        }
        assert post.headers["content-type"] == "application/json"
        assert post.headers["x-headway-id"] == "run-1.reply"
        assert post.headers["x-headway-timestamp"] == str(NOW_S)
        signed = f"{NOW_S}.".encode() + post.body
        digest = hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()
        assert post.headers["x-headway-signature"] == f"sha256={digest}"

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(asyncio.wait_for(main(), 60))


def test_s10_an_empty_delivery_says_that_nothing_comes() -> None:
    async def main() -> None:
        async with receiver(OK) as receiving:
            await WebhookChannel(receiving.url, SECRET).send(letter("", id="run-1.empty"))
        (post,) = receiving.posts
        body = json.loads(post.body)
        assert (body["empty"], body["text"], body["attachments"]) == (True, "", [])

    play(main())


def test_typing_posts_nothing() -> None:
    async def main() -> None:
        async with receiver(OK) as receiving:
            await WebhookChannel(receiving.url, SECRET).typing(CHAT, True)
            assert receiving.posts == []

    play(main())


def test_headers_of_the_users_go_along_but_replace_none_of_ours() -> None:
    async def main() -> None:
        async with receiver(OK) as receiving:
            headers = {"Authorization": "Bearer x", "x-headway-id": "a lie"}
            await WebhookChannel(receiving.url, SECRET, headers=headers).send(letter())
        (post,) = receiving.posts
        assert post.headers["authorization"] == "Bearer x"
        assert post.headers["x-headway-id"] == "run-1.reply"

    play(main())


@pytest.mark.parametrize("status", ["200 OK", "201 Created", "202 Accepted", "204 No Content"])
def test_2xx_takes_it(status: str) -> None:
    async def main() -> None:
        async with receiver(answer(status)) as receiving:
            await WebhookChannel(receiving.url, SECRET).send(letter())
            assert len(receiving.posts) == 1

    play(main())


@pytest.mark.parametrize(
    ("status", "permanent"),
    [
        ("301 Moved Permanently", False),
        ("307 Temporary Redirect", False),
        ("400 Bad Request", True),
        ("401 Unauthorized", True),
        ("404 Not Found", True),
        ("408 Request Timeout", False),
        ("410 Gone", True),
        ("429 Too Many Requests", False),
        ("500 Internal Server Error", False),
        ("503 Service Unavailable", False),
    ],
)
def test_only_4xx_but_for_408_and_429_is_for_ever(status: str, permanent: bool) -> None:
    async def main() -> None:
        async with receiver(answer(status, b"because\n")) as receiving:
            with pytest.raises((Permanent, WebhookFailed)) as failure:
                await WebhookChannel(receiving.url, SECRET).send(letter())
            assert isinstance(failure.value, Permanent) == permanent
            assert str(failure.value).endswith(f" answered {status[:3]}: because")
            assert "t0ken" not in str(failure.value), "an address may hold a secret"

    play(main())


def test_a_redirect_is_not_followed() -> None:
    async def main() -> None:
        async with receiver(OK) as elsewhere:
            moved = answer("302 Found", b"", f"Location: {elsewhere.url}")
            async with receiver(moved) as receiving:
                with pytest.raises(WebhookFailed, match="answered 302"):
                    await WebhookChannel(receiving.url, SECRET).send(letter())
                assert (len(receiving.posts), elsewhere.posts) == (1, [])

    play(main())


@pytest.mark.parametrize("status", ["200 OK", "500 Internal Server Error"])
def test_of_a_long_answer_only_the_beginning_is_read(status: str) -> None:
    endless = f"HTTP/1.1 {status}\r\nContent-Length: 1000000000\r\n\r\n".encode() + b"x" * 5_000

    async def main() -> None:
        async with receiver(endless) as receiving:
            channel = WebhookChannel(receiving.url, SECRET)
            if status.startswith("200"):
                await channel.send(letter())
            else:
                with pytest.raises(WebhookFailed) as failure:
                    await channel.send(letter())
                assert str(failure.value).endswith(": " + "x" * 1_000)

    play(main())


def test_an_answer_that_does_not_come_is_not_waited_for() -> None:
    async def main() -> None:
        async with receiver(None) as receiving:
            channel = WebhookChannel(receiving.url, SECRET, timeout=timedelta(seconds=0.5))
            with pytest.raises(WebhookFailed, match=r"did not answer within 0\.5 s"):
                await channel.send(letter())
            assert len(receiving.posts) == 1

    play(main())


def test_an_answer_that_drips_is_not_waited_for_either() -> None:
    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n")
        try:
            while True:
                writer.write(b".")
                await writer.drain()
                await asyncio.sleep(0.02)
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(drip, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        with pytest.raises(WebhookFailed, match="did not answer"):
            await WebhookChannel(url, SECRET, timeout="200ms").send(letter())
        server.close()

    play(main())


def test_a_server_that_is_not_there_is_tried_again() -> None:
    async def main() -> None:
        async with receiver(OK) as receiving:
            pass
        with pytest.raises(WebhookFailed, match="could not be told: ConnectError"):
            await WebhookChannel(receiving.url, SECRET).send(letter())

    play(main())


def test_one_channel_serves_loop_after_loop() -> None:
    """A node that is started again has another loop."""
    channel: WebhookChannel | None = None
    port = 0

    async def main() -> None:
        nonlocal channel, port
        async with receiver(OK, port=port) as receiving:
            channel = channel or WebhookChannel(receiving.url, SECRET)
            port = int(receiving.url.split(":")[2].partition("/")[0])
            await channel.send(letter())
            assert len(receiving.posts) == 1

    play(main())
    play(main())


def test_an_answer_that_is_not_http_is_tried_again() -> None:
    async def main() -> None:
        async with receiver(b"220 mail.example.com ESMTP\r\n") as receiving:
            with pytest.raises(WebhookFailed, match="could not be told: RemoteProtocolError"):
                await WebhookChannel(receiving.url, SECRET).send(letter())

    play(main())


def test_the_courier_tries_again_until_the_receiver_has_it() -> None:
    """500, then 200: the same id twice, and each signed."""

    async def main() -> None:
        async with receiver(answer("500 Oops"), OK) as receiving:
            hw = Headway()

            @hw.agent("echo")
            async def echo(turn: Turn) -> str:
                return turn.text

            hw.add_channel("chat", WebhookChannel(receiving.url, SECRET))
            async with hw:
                heard = hear(hw)
                await hw.send("echo", "hello", session="s", route=CHAT)
                while len(receiving.posts) < 2:
                    receiving.came.clear()
                    await receiving.came.wait()
        first, second = receiving.posts
        assert first.headers["x-headway-id"] == second.headers["x-headway-id"]
        assert first.body == second.body
        for post in receiving.posts:
            assert verify_signature(
                SECRET,
                post.headers["x-headway-timestamp"],
                post.body,
                post.headers["x-headway-signature"],
            )
        (failed,) = only(heard, DeliveryFailed)
        assert "answered 500" in failed.error

    play(main())


def test_a_receiver_verifies_what_came() -> None:
    body, at = b'{"text":"hello"}', str(NOW_S)
    signature = sign(SECRET, at, body)
    clock = FixedClock()
    assert verify_signature(SECRET, at, body, signature, clock=clock)
    assert verify_signature(SECRET.encode(), at, body, signature, clock=clock)
    assert not verify_signature("another", at, body, signature, clock=clock)
    assert not verify_signature(SECRET, at, body + b" ", signature, clock=clock)
    assert not verify_signature(SECRET, str(NOW_S + 1), body, signature, clock=clock)


@pytest.mark.parametrize(
    "signature", ["", "sha256=", "sha256=é", "\ud800", "md5=x", "SHA256=" + 64 * "0"]
)
def test_what_is_no_signature_is_refused(signature: str) -> None:
    assert not verify_signature(SECRET, str(NOW_S), b"{}", signature, clock=FixedClock())


@pytest.mark.parametrize("timestamp", ["", "now", "-1", "1.5", "²", "9" * 5_000, "1800000000\n"])
def test_what_is_no_timestamp_is_refused_though_it_is_signed(timestamp: str) -> None:
    signature = sign(SECRET, timestamp, b"{}")
    assert not verify_signature(SECRET, timestamp, b"{}", signature, clock=FixedClock())


@pytest.mark.parametrize(
    ("age_s", "within", "fresh"),
    [
        (299, "5m", True),
        (-299, "5m", True),
        (301, "5m", False),
        (-301, "5m", False),
        (2, "1s", False),
    ],
)
def test_a_letter_that_is_replayed_later_is_refused(age_s: int, within: str, fresh: bool) -> None:
    at = str(NOW_S)
    signature = sign(SECRET, at, b"{}")
    clock = FixedClock(NOW_S + age_s)
    assert verify_signature(SECRET, at, b"{}", signature, within=within, clock=clock) is fresh


@pytest.mark.parametrize(
    "url", ["", "x", "ftp://example.com/", "http://", "http:///path", "https://exa\nmple.com/"]
)
def test_an_address_that_cannot_be_posted_to_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput, match="url"):
        WebhookChannel(url, SECRET)


def test_without_a_secret_there_is_no_webhook() -> None:
    with pytest.raises(InvalidInput, match="secret"):
        WebhookChannel("https://example.com/", "")


@pytest.mark.parametrize("headers", [{"X-A": "a\r\nX-B: b"}, {"X\n": "a"}, {"X-A": "ü"}])
def test_headers_that_cannot_be_sent_are_refused(headers: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="headers"):
        WebhookChannel("https://example.com/", SECRET, headers=headers)


def test_it_shows_nothing_secret_of_itself() -> None:
    channel = WebhookChannel("https://ann:pass@example.com:8443/t0ken", SECRET)
    assert repr(channel) == "<WebhookChannel https://example.com:8443>"


def test_without_httpx_it_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['httpx'] = None\n"
        "from headway import Refused\n"
        "from headway.channels import WebhookChannel\n"
        "try: WebhookChannel('https://example.com/', 'x')\n"
        "except Refused as refused: print(refused)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout == "a webhook needs httpx: pip install 'headway[webhook]'\n"
