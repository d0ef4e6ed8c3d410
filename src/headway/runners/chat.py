"""Chat endpoints that speak as OpenAI's does: the text that they stream is the run's live output."""

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

import msgspec

from headway.core.template import check_template, fill
from headway.model.errors import InvalidInput, WorkFailed
from headway.model.outcome import Json, Reply
from headway.model.runner import ChatSpec
from headway.runners.answer import BAD_ANSWER, TOO_LARGE, Answer
from headway.runners.completion import Completion, NotACompletion, ProviderError
from headway.runners.credentials import bearer, headers_of, token_of
from headway.runners.event_stream import EventStream, LineTooLong
from headway.runners.exchange import Ask, Exchange, check_address, encoded
from headway.runners.http import task_of
from headway.runners.values import values_of
from headway.turn import Turn

if TYPE_CHECKING:
    from httpx import AsyncBaseTransport

PROVIDER_ERROR = "provider_error"
_STREAM = "text/event-stream"
_JSON = "application/json"
_DONE = b"[DONE]"
_END_WITHIN_S = 0.25
_OURS = frozenset({"messages", "model", "stream"})


class ChatRunner:
    """Asks a model, with what the run says as the user's words.

    The reply is the whole text. What is no plain text, such as calls of tools or why it stopped early, is the
    reply's data. The tokens that the endpoint counts are reported as the turn's.
    """

    def __init__(self, spec: ChatSpec, *, transport: "AsyncBaseTransport | None" = None) -> None:
        address = check_address(spec.url, "url")
        if address.query or address.fragment:
            raise InvalidInput("url", "…", "an address up to and with /v1")
        self._url = f"{str(address).rstrip('/#?')}/chat/completions"
        self._system = check_template(spec.system, "system")
        if not spec.model:
            raise InvalidInput("model", spec.model, "the name of a model")
        self._said = _said(spec)
        headers = headers_of(spec.headers)
        headers.setdefault("accept", f"{_STREAM}, {_JSON}" if spec.stream else _JSON)
        self._bearer = bearer(token_of(spec.token, "token", headers))
        self._exchange = Exchange(
            headers=headers,
            max_body=spec.max_body,
            connections=spec.connections,
            transport=transport,
        )

    async def run(self, turn: Turn) -> Reply:
        body = encoded({**self._said, "messages": self._messages(turn)})
        asked = Ask("POST", self._url, body, self._bearer)
        async with self._exchange.ask(turn, asked) as answer:
            completion = Completion()
            try:
                if answer.media_type == _STREAM:
                    await _listen(answer, completion, turn)
                else:
                    completion.take_whole(await answer.read())
            except ProviderError as wrong:
                raise WorkFailed(
                    f"{answer.where}: {wrong}",
                    PROVIDER_ERROR,
                    wrong.details,
                    permanent=wrong.permanent,
                ) from wrong
            except NotACompletion as wrong:
                raise WorkFailed(f"{answer.where}: {wrong}", BAD_ANSWER) from wrong
            except LineTooLong as wrong:
                raise WorkFailed(f"{answer.where}: {wrong}", TOO_LARGE, permanent=True) from wrong
            finally:
                # Also of what broke off: it was paid for.
                if completion.tokens_in or completion.tokens_out:
                    turn.usage(completion.tokens_in, completion.tokens_out)
        return completion.reply()

    async def close(self) -> None:
        await self._exchange.close()

    def _messages(self, turn: Turn) -> list[Json]:
        messages: list[Json] = []
        if self._system:
            messages.append({"role": "system", "content": fill(self._system, values_of(turn))})
        messages.append({"role": "user", "content": _content(turn)})
        return messages


async def _listen(answer: Answer, completion: Completion, turn: Turn) -> None:
    """Take a stream as it comes, to its last word: one that stops before that broke off."""
    stream = EventStream()
    done = False
    try:
        async with asyncio.timeout(None) as patience, aclosing(answer.pieces()) as pieces:
            async for piece in pieces:
                for event in stream.take(piece):
                    if event == _DONE:
                        done = True
                        # What is read to its end leaves the connection for the next one.
                        patience.reschedule(asyncio.get_running_loop().time() + _END_WITHIN_S)
                    elif not done:
                        _emit(turn, completion.take_delta(event))
    except (TimeoutError, WorkFailed):
        if not done:
            raise
    for event in stream.end():
        if event == _DONE:
            done = True
        elif not done:
            _emit(turn, completion.take_delta(event))
    if not done and completion.finish_reason is None:
        raise answer.broken_off(f"{len(completion.text):,} characters came, and no end")


def _emit(turn: Turn, text: str) -> None:
    if text:
        turn.emit(text)


def _said(spec: ChatSpec) -> dict[str, Json]:
    """What every request says. `stream_options` can be left out, for servers that do not know it, by null."""
    options = {} if spec.options is None else spec.options
    if not isinstance(options, dict):
        raise InvalidInput("options", options, 'values by name, such as {"temperature": 0}')
    for name in options:
        if name in _OURS:
            raise InvalidInput("options", name, "other options: Headway itself says this one")
    said: dict[str, Json] = {"model": spec.model, "stream": spec.stream}
    if spec.stream:
        said["stream_options"] = {"include_usage": True}
    said |= options
    if said.get("stream_options", ...) is None:
        del said["stream_options"]
    return said


def _content(turn: Turn) -> Json:
    """What the user says: a text, or parts of which some are pictures. A task without a text says itself."""
    text = turn.text
    if not text and turn.task is not None:
        text = msgspec.json.encode(task_of(turn.task)).decode()
    if not turn.attachments:
        return text
    parts: list[Json] = [{"type": "text", "text": text}] if text else []
    for each in turn.attachments:
        if each.media_type.startswith("image/"):
            parts.append({"type": "image_url", "image_url": {"url": each.url}})
        else:
            parts.append({"type": "text", "text": f"{each.name}: {each.url}"})
    return parts
