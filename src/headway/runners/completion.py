"""What a model answers, whole or in pieces, as endpoints write it that speak as OpenAI's does.

Such endpoints differ in what they leave out and in what they add, so little is expected: the text, calls of tools,
why it stopped, and how many tokens it took.
"""

from typing import cast

import msgspec

from headway.model.errors import HeadwayError
from headway.model.outcome import Json, Reply

_MOST_TOOL_CALLS = 1_000


class NotACompletion(HeadwayError):
    """Something else came than what a model answers."""

    code = "not_a_completion"


class ProviderError(HeadwayError):
    """The endpoint says that something went wrong, in an answer that began well."""

    code = "provider_error"

    def __init__(self, error: Json) -> None:
        said = error.get("message") if isinstance(error, dict) else error
        kind = error.get("type") if isinstance(error, dict) else None
        self.permanent = kind == "invalid_request_error"
        self.details: dict[str, Json] = {"error": error}
        text = said if isinstance(said, str) else msgspec.json.encode(error).decode()
        super().__init__(text[:2_000])


class _Function(msgspec.Struct):
    name: str | None = None
    arguments: str | None = None


class _ToolCall(msgspec.Struct):
    index: int | None = None
    id: str | None = None
    type: str | None = None
    function: _Function | None = None


class _Words(msgspec.Struct):
    """A message, or a piece of one."""

    content: object = None
    refusal: str | None = None
    tool_calls: list[_ToolCall] | None = None


class _Choice(msgspec.Struct):
    index: int = 0
    delta: _Words | None = None
    message: _Words | None = None
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class _Said(msgspec.Struct):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: object = None


_decode = msgspec.json.Decoder(_Said).decode


class Completion:
    """The first answer of a model, as far as it has come."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._refusal: list[str] = []
        self._tools: dict[int, dict[str, str]] = {}
        self.finish_reason: str | None = None
        self.tokens_in = 0
        self.tokens_out = 0

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def take_whole(self, body: bytes) -> None:
        choice = self._choice(body)
        if choice is None or choice.message is None:
            raise NotACompletion(f"this is not what a model answers: {_shown(body)}")
        self._take(choice.message)

    def take_delta(self, event: bytes) -> str:
        """One event of a stream; the text that it adds."""
        choice = self._choice(event)
        words = None if choice is None else choice.delta or choice.message
        return "" if words is None else self._take(words)

    def reply(self) -> Reply:
        """A text is the reply; what a text cannot say is data."""
        data: dict[str, Json] = {}
        if self._tools:
            data["tool_calls"] = [_call(self._tools[index]) for index in sorted(self._tools)]
        if self._refusal:
            data["refusal"] = "".join(self._refusal)
        text = self.text
        if data or not text or self.finish_reason not in {None, "stop"}:
            data["finish_reason"] = self.finish_reason
        return Reply(text, data=data or None)

    def _choice(self, body: bytes) -> _Choice | None:
        """The first choice, if there is one. Any piece may say how many tokens it took; the last one counts."""
        try:
            said = _decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as wrong:
            raise NotACompletion(f"this is not what a model answers: {_shown(body)}") from wrong
        if said.usage is not None:
            self.tokens_in = max(said.usage.prompt_tokens or 0, 0)
            self.tokens_out = max(said.usage.completion_tokens or 0, 0)
        if said.error is not None:
            raise ProviderError(cast(Json, said.error))
        choice = next((each for each in said.choices or () if each.index == 0), None)
        if choice is not None:
            self.finish_reason = choice.finish_reason or self.finish_reason
        return choice

    def _take(self, words: _Words) -> str:
        text = _text(words.content)
        if text:
            self._pieces.append(text)
        if words.refusal:
            self._refusal.append(words.refusal)
        for place, call in enumerate(words.tool_calls or ()):
            self._take_call(place if call.index is None else call.index, call)
        return text

    def _take_call(self, index: int, call: _ToolCall) -> None:
        """Calls of tools come in pieces too: the name first, then the arguments bit by bit."""
        if index not in self._tools and len(self._tools) >= _MOST_TOOL_CALLS:
            raise NotACompletion(f"more than {_MOST_TOOL_CALLS} calls of tools")
        known = self._tools.setdefault(
            index, {"id": "", "type": "function", "name": "", "arguments": ""}
        )
        known["id"] = call.id or known["id"]
        known["type"] = call.type or known["type"]
        if call.function is not None:
            known["name"] += call.function.name or ""
            known["arguments"] += call.function.arguments or ""


def _text(content: object) -> str:
    """A text, or the texts of its parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [part.get("text") for part in content if isinstance(part, dict)]
    return "".join(text for text in texts if isinstance(text, str))


def _call(known: dict[str, str]) -> Json:
    function: dict[str, Json] = {"name": known["name"], "arguments": known["arguments"]}
    return {"id": known["id"], "type": known["type"], "function": function}


def _shown(body: bytes) -> str:
    return body[:200].decode(errors="replace")
