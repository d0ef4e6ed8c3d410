"""The channel of callbacks, against real receivers on this machine (T-4)."""

import asyncio
import json
import shutil
import ssl
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from headway import InvalidInput, Permanent
from headway.channels import WebhookFailed, verify_signature
from headway.channels.callback import CallbackChannel
from headway.channels.reaching import Resolver
from headway.core.callback_url import CALLBACK
from headway.model.places import Delivery
from headway.model.run import Route
from headway.model.settings import CallbackSettings
from headway.model.time import SECOND
from headway.ports import Channel
from headway.runtime.round import ManyReceivers
from tests.unit.channels.letters import letter
from tests.unit.channels.receivers import OK, SECRET, FixedClock, answer, play, receiver

BODY = '{"id":"run-1.callback","state":"done"}'


def notice(url: str) -> Delivery:
    return letter(BODY, id="run-1.callback", route=Route(CALLBACK, peer=url))


def channel(resolve: Resolver | None = None, **settings: object) -> CallbackChannel:
    fields: dict[str, object] = {"secret": SECRET, "private": True, **settings}
    return CallbackChannel(
        CallbackSettings(**fields),  # type: ignore[arg-type]
        clock=FixedClock(),
        resolve=resolve,
    )


class Names:
    """A server of names that answers each time with the next of its answers, and then with the last one again."""

    def __init__(self, *answers: str) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        del port
        self.asked.append(host)
        found = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return found.split()


def test_t4_a_notice_is_posted_as_it_was_kept_and_signed() -> None:
    async def main() -> None:
        async with receiver(OK) as receiving:
            telling = channel()
            assert isinstance(telling, Channel)
            assert isinstance(telling, ManyReceivers)
            await telling.send(notice(receiving.url))
        (post,) = receiving.posts
        assert post.line == "POST /hook/t0ken?x=1 HTTP/1.1"
        assert post.headers["host"] == f"127.0.0.1:{receiving.port}"
        assert post.headers["x-headway-id"] == "run-1.callback"
        assert post.body == BODY.encode()
        stamp, signature = post.headers["x-headway-timestamp"], post.headers["x-headway-signature"]
        assert verify_signature(SECRET, stamp, post.body, signature, clock=FixedClock())

    play(main())


def test_t4_the_connection_is_made_to_the_checked_address_by_the_callers_name() -> None:
    async def main() -> None:
        async with receiver(OK) as receiving:
            names = Names("127.0.0.1")
            url = f"http://hook.example:{receiving.port}/a?b"
            await channel(names).send(notice(url))
        (post,) = receiving.posts
        assert post.line == "POST /a?b HTTP/1.1"
        assert post.headers["host"] == f"hook.example:{receiving.port}"
        assert names.asked == ["hook.example"], "looked up once, by us"

    play(main())


def test_t4_a_host_that_turns_private_after_its_submission_is_never_connected() -> None:
    """Public when the task is submitted, this machine when it is delivered: nothing is sent."""

    async def main() -> None:
        connected = []
        server = await asyncio.start_server(
            lambda reader, writer: connected.append((reader, writer)), "127.0.0.1", 0
        )
        port = server.sockets[0].getsockname()[1]
        names = Names("1.1.1.1", "127.0.0.1")
        telling = channel(names, private=False)
        url = f"http://rebinding.example:{port}/"
        await telling.check(url)
        for _ in range(2):
            with pytest.raises(WebhookFailed, match="this machine"):
                await telling.send(notice(url))
        server.close()
        assert connected == []
        assert len(names.asked) == 3

    play(main())


def test_t4_one_private_address_among_public_ones_is_enough_to_refuse() -> None:
    async def main() -> None:
        async with receiver(OK) as receiving:
            telling = channel(Names("1.1.1.1 127.0.0.1"), private=False)
            with pytest.raises(WebhookFailed, match="public internet"):
                await telling.send(notice(f"http://mixed.example:{receiving.port}/"))
            with pytest.raises(InvalidInput, match="public internet"):
                await telling.check(f"http://mixed.example:{receiving.port}/")
            assert receiving.posts == []

    play(main())


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "0x7f.1", "2130706433", "localhost"])
def test_t4_at_submission_the_caller_is_told_what_is_wrong(host: str) -> None:
    async def main() -> None:
        with pytest.raises(InvalidInput) as wrong:
            await channel(private=False).check(f"http://{host}:8080/x?token=s3cret-of-mine")
        assert wrong.value.field == "callback"
        assert "callbacks.private" in str(wrong.value)
        assert "s3cret-of-mine" not in str(wrong.value)

    play(main())


@pytest.mark.parametrize("status", ["301 Moved Permanently", "302 Found", "308 Permanent Redirect"])
def test_t4_a_redirect_is_not_followed_and_is_final(status: str) -> None:
    async def main() -> None:
        async with receiver(OK) as elsewhere:
            moved = answer(status, b"", f"Location: {elsewhere.url}")
            async with receiver(moved) as receiving:
                with pytest.raises(Permanent, match=status[:3]):
                    await channel().send(notice(receiving.url))
            assert elsewhere.posts == []

    play(main())


@pytest.mark.parametrize(
    ("status", "error"),
    [
        ("404 Not Found", Permanent),
        ("410 Gone", Permanent),
        ("408 Request Timeout", WebhookFailed),
        ("429 Too Many Requests", WebhookFailed),
        ("500 Internal Server Error", WebhookFailed),
    ],
)
def test_t4_what_an_answer_means_is_as_for_webhooks(status: str, error: type[Exception]) -> None:
    async def main() -> None:
        async with receiver(answer(status, b"why so")) as receiving:
            with pytest.raises(error) as failed:
                await channel().send(notice(receiving.url))
        assert "why so" in str(failed.value)
        assert "t0ken" not in str(failed.value), "a secret in the address is not shown"

    play(main())


def test_t4_a_receiver_that_never_answers_is_given_up_within_the_timeout() -> None:
    async def main() -> None:
        async with receiver(None) as receiving:
            with pytest.raises(WebhookFailed, match=r"within 0\.3 s"):
                await channel(timeout=3 * SECOND // 10).send(notice(receiving.url))

    play(main())


def test_t4_the_next_address_is_tried_if_nobody_takes_the_connection() -> None:
    async def main() -> None:
        async with receiver(OK) as receiving:
            names = Names("127.0.0.2 127.0.0.1")
            await channel(names).send(notice(f"http://two.example:{receiving.port}/"))
            assert len(receiving.posts) == 1

    play(main())


def test_t4_no_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with receiver(OK) as proxy, receiver(OK) as receiving:
            for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
                monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
            await channel().send(notice(receiving.url))
            assert (len(proxy.posts), len(receiving.posts)) == (0, 1)

    play(main())


def test_a_receiver_cannot_set_cookies() -> None:
    async def main() -> None:
        baking = answer("200 OK", b"", "Set-Cookie: who=me; Path=/")
        async with receiver(baking) as receiving:
            telling = channel()
            await telling.send(notice(receiving.url))
            await telling.send(notice(receiving.url))
        assert [post.headers.get("cookie") for post in receiving.posts] == [None, None]

    play(main())


def test_t4_nothing_but_a_notice_is_signed_as_one() -> None:
    """Whoever could have a reply of an agent signed could forge how a task ended."""

    async def main() -> None:
        async with receiver(OK) as receiving:
            forged = letter(BODY, id="run-1.reply", route=Route(CALLBACK, peer=receiving.url))
            with pytest.raises(Permanent):
                await channel().send(forged)
            assert receiving.posts == []

    play(main())


def test_receivers_are_hosts_whatever_their_paths() -> None:
    telling = channel()
    one, other = (Route(CALLBACK, peer=f"https://a.example/{path}") for path in ("x", "y?z"))
    assert telling.receiver(one) == telling.receiver(other) == "a.example:443"
    assert telling.receiver(Route(CALLBACK, peer="https://b.example/")) == "b.example:443"
    assert telling.receiver(Route(CALLBACK, peer="nonsense")) == ""


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """A receiver's side that proves to be hook.example, to whoever trusts the test."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not on this machine: it makes the certificate")
    key, chain = tmp_path / "key.pem", tmp_path / "chain.pem"
    command = [openssl, "req", "-x509", "-nodes", "-days", "2", "-subj", "/CN=hook.example"]
    command += ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    command += [
        "-addext",
        "subjectAltName=DNS:hook.example",
        "-keyout",
        str(key),
        "-out",
        str(chain),
    ]
    subprocess.run(command, check=True, capture_output=True)
    monkeypatch.setenv("SSL_CERT_FILE", str(chain))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(chain, key)
    return context


def test_t4_the_certificate_must_be_that_of_the_name(certificate: ssl.SSLContext) -> None:
    """The connection goes to an address; whose it is, is proved for the name that the caller gave."""

    async def main() -> None:
        async with receiver(OK, tls=certificate) as receiving:
            telling = channel(Names("127.0.0.1"))
            await telling.send(notice(f"https://hook.example:{receiving.port}/"))
            await telling.send(notice(f"https://hook.example.:{receiving.port}/"))
            for host in ("other.example", "127.0.0.1"):
                with pytest.raises(WebhookFailed, match=r"(?i)certificate"):
                    await telling.send(notice(f"https://{host}:{receiving.port}/"))
        assert len(receiving.posts) == 2
        assert json.loads(receiving.posts[0].body)["state"] == "done"

    play(main())
