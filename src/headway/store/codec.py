"""How values are written into a database, and read back: JSON text, without what is at its default.

All stores that use SQL write alike. A reader ignores fields that it does not know, so nodes of two versions can
share a database. The text has no NUL, whatever the value holds: JSON writes it as an escape, which every
database takes.
"""

import json
from collections.abc import Callable, Mapping
from typing import cast

import msgspec

from headway.model.outcome import Attachment, Json, Outcome, Reply
from headway.model.places import Answer, Command, Delivery, Standing
from headway.model.run import Run, SessionMemory
from headway.model.value import Value
from headway.model.words import Reason, State

_encode = msgspec.json.Encoder().encode
_parts = msgspec.structs.astuple


# The values as they are written. What people and programs are shown has every field; a row has only what was said.


class _WrittenRun(Run, frozen=True, omit_defaults=True):
    pass


class _WrittenOutcome(Outcome, frozen=True, omit_defaults=True):
    pass


class _WrittenReply(Reply, frozen=True, omit_defaults=True):
    pass


class _WrittenStanding(Standing, frozen=True, omit_defaults=True):
    pass


class _WrittenMemory(SessionMemory, frozen=True, omit_defaults=True):
    pass


def _text_of(value: object) -> str:
    try:
        return _encode(value).decode()
    except UnicodeEncodeError:
        # Half of a surrogate pair has no UTF-8, but an agent may well return one: written as an escape it is
        # kept as it came, and the outcome it stands in is not lost.
        return json.dumps(msgspec.to_builtins(value))


def _reader(kind: object) -> Callable[[str | bytes], object]:
    """Reads one kind of value, also where the text has half of a surrogate pair."""
    decoder = msgspec.json.Decoder(kind)

    def read(text: str | bytes) -> object:
        try:
            return decoder.decode(text)
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError:
            return msgspec.convert(json.loads(text), kind)

    return read


class _StoredReply(Value, frozen=True):
    """A reply as it is read: its data may be any JSON, which `Json` says to people and not to msgspec."""

    text: str = ""
    attachments: tuple[Attachment, ...] = ()
    data: object = None


class _StoredOutcome(Value, frozen=True):
    """An outcome as it is read."""

    state: State
    reason: Reason | None = None
    reply: _StoredReply | None = None
    error: str = ""
    into: str | None = None


_read_run = _reader(Run)
_read_outcome = _reader(_StoredOutcome)
_read_standing = _reader(Standing)
_read_memory = _reader(SessionMemory)
_read_command = _reader(Command)
_read_answer = _reader(Answer)
_read_delivery = _reader(Delivery)
_read_attachments = _reader(tuple[Attachment, ...])
_read_fields = _reader(dict[str, object])


def encode_run(run: Run) -> str:
    return _text_of(_WrittenRun(*_parts(run)))


def decode_run(text: str | bytes) -> Run:
    return cast(Run, _read_run(text))


def encode_outcome(outcome: Outcome) -> str:
    state, reason, reply, error, into = _parts(outcome)
    if reply is not None:
        reply = _WrittenReply(*_parts(reply))
    return _text_of(_WrittenOutcome(state, reason, reply, error, into))


def decode_outcome(text: str | bytes) -> Outcome:
    stored = cast(_StoredOutcome, _read_outcome(text))
    reply = None
    if stored.reply is not None:
        said = stored.reply
        reply = Reply(said.text, said.attachments, cast(Json, said.data))
    return Outcome(stored.state, stored.reason, reply, stored.error, stored.into)


def encode_standing(standing: Standing) -> str:
    return _text_of(_WrittenStanding(*_parts(standing)))


def decode_standing(text: str | bytes) -> Standing:
    return cast(Standing, _read_standing(text))


def encode_memory(memory: SessionMemory) -> str:
    return _text_of(_WrittenMemory(*_parts(memory)))


def decode_memory(text: str | bytes) -> SessionMemory:
    return cast(SessionMemory, _read_memory(text))


def encode_command(command: Command) -> str:
    return _text_of(command)


def decode_command(text: str | bytes) -> Command:
    return cast(Command, _read_command(text))


def encode_answer(answer: Answer) -> str:
    return _text_of(answer)


def decode_answer(text: str | bytes) -> Answer:
    return cast(Answer, _read_answer(text))


def encode_delivery(delivery: Delivery) -> str:
    return _text_of(delivery)


def decode_delivery(text: str | bytes) -> Delivery:
    return cast(Delivery, _read_delivery(text))


def encode_attachments(attachments: tuple[Attachment, ...]) -> str:
    return _text_of(attachments)


def decode_attachments(text: str | bytes) -> tuple[Attachment, ...]:
    return cast(tuple[Attachment, ...], _read_attachments(text))


def encode_fields(fields: Mapping[str, object]) -> str:
    """The fields of an event that is kept."""
    return _text_of(dict(fields))


def decode_fields(text: str | bytes) -> dict[str, object]:
    return cast(dict[str, object], _read_fields(text))
