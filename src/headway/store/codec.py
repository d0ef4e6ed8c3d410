"""How values are written into a database, and read back: JSON text, without what is at its default.

All stores that use SQL write alike. A reader ignores fields that it does not know, so nodes of two versions can
share a database. The text has no NUL, whatever the value holds: JSON writes it as an escape, which every
database takes.
"""

from collections.abc import Mapping
from typing import cast

import msgspec

from headway.model.job import MAX_SUMMARY, Job, Tally
from headway.model.outcome import Attachment, Json, Outcome, Reply
from headway.model.places import Answer, Command, Delivery, Standing
from headway.model.run import AgentName, Route, Run, SessionMemory
from headway.model.token import Token
from headway.model.value import Value
from headway.model.words import Reason, Scope, State
from headway.store.texts import read_cursor, reader, text_of

_parts = msgspec.structs.astuple
_DONE = State.DONE


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


class _WrittenJob(Job, frozen=True, omit_defaults=True):
    pass


class _WrittenRoute(Route, frozen=True, omit_defaults=True):
    pass


class _WrittenToken(Token, frozen=True, omit_defaults=True):
    pass


UNTAKEN = "no node has taken it for two days: none has this channel"
"""Why a delivery is a dead letter that was never tried."""
_read_tally = msgspec.json.Decoder(Tally).decode


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
    tokens_in: int = 0
    tokens_out: int = 0
    code: str = ""
    details: object = None


class _StoredToken(Value, frozen=True):
    """A token as it is read: a newer version may know scopes that this one does not."""

    id: str
    name: str
    digest: str
    scopes: tuple[str, ...]
    created_at: int
    agent: str | None = None
    expires_at: int | None = None


_SCOPES = {str(scope): scope for scope in Scope}

_read_run = reader(Run)
_read_outcome = reader(_StoredOutcome)
_read_standing = reader(Standing)
_read_memory = reader(SessionMemory)
_read_command = reader(Command)
_read_answer = reader(Answer)
_read_delivery = reader(Delivery)
_read_job = reader(Job)
_read_route = reader(Route)
_read_token = reader(_StoredToken)
_read_text = reader(str)
_read_job_cursor = reader(tuple[str, str])
_read_letter_cursor = reader(tuple[int, str])

_SAID = "said:"


def encode_run(run: Run) -> str:
    return text_of(_WrittenRun(*_parts(run)))


def decode_run(text: str | bytes) -> Run:
    return _read_run(text)  # type: ignore[return-value]  # once for each run: a cast takes time


def encode_outcome(outcome: Outcome) -> str:
    said = outcome.reply
    if said is not None and outcome.state is _DONE and _says_only_text(outcome, said):
        return f'{{"state":"done","reply":{{"text":{text_of(said.text)}}}}}'
    state, reason, reply, *rest = _parts(outcome)
    if reply is not None:
        reply = _WrittenReply(*_parts(reply))
    return text_of(_WrittenOutcome(state, reason, reply, *rest))


def _says_only_text(outcome: Outcome, reply: Reply) -> bool:
    """The usual outcome: written by hand it takes half the time."""
    return bool(reply.text) and not (
        reply.attachments
        or reply.data is not None
        or outcome.error
        or outcome.into
        or outcome.tokens_in
        or outcome.tokens_out
        or outcome.code
        or outcome.details is not None
        or outcome.reason is not None
    )


def decode_outcome(text: str | bytes) -> Outcome:
    stored = cast(_StoredOutcome, _read_outcome(text))
    reply = None
    if stored.reply is not None:
        said = stored.reply
        reply = Reply(said.text, said.attachments, cast(Json, said.data))
    return Outcome(
        stored.state,
        stored.reason,
        reply,
        stored.error,
        stored.into,
        stored.tokens_in,
        stored.tokens_out,
        stored.code,
        cast(Json, stored.details),
    )


def decode_entry_outcome(text: str | bytes) -> Outcome:
    """An outcome as the log of a job shows it."""
    return summary_of(decode_outcome(text))


def summary_of(outcome: Outcome) -> Outcome:
    """An outcome with as much of its reply as a line of a job's log shows (C-11), and without data."""
    reply = outcome.reply
    if reply is None:
        return outcome
    text = _cut(reply.text, MAX_SUMMARY)
    if reply.data is None and len(text) == len(reply.text):
        return outcome
    return msgspec.structs.replace(outcome, reply=Reply(text, reply.attachments))


def _cut(text: str, most: int) -> str:
    """As many whole characters from the start as fit into so many bytes."""
    if len(text) * 4 <= most:
        return text
    # Longer in bytes than in characters, so no more than this can fit.
    written = text[: most + 1].encode(errors="surrogatepass")
    if len(written) <= most:
        return text
    end = most
    while written[end] & 0xC0 == 0x80:
        end -= 1
    return written[:end].decode(errors="surrogatepass")


def encode_standing(standing: Standing) -> str:
    return text_of(_WrittenStanding(*_parts(standing)))


def decode_standing(text: str | bytes) -> Standing:
    return cast(Standing, _read_standing(text))


def encode_memory(memory: SessionMemory) -> str:
    return text_of(_WrittenMemory(*_parts(memory)))


def decode_memory(text: str | bytes) -> SessionMemory:
    return cast(SessionMemory, _read_memory(text))


def encode_command(command: Command) -> str:
    return text_of(command)


def decode_command(text: str | bytes) -> Command:
    return cast(Command, _read_command(text))


def encode_answer(answer: Answer) -> str:
    return text_of(answer)


def decode_answer(text: str | bytes) -> Answer:
    return cast(Answer, _read_answer(text))


def encode_delivery(delivery: Delivery) -> str:
    return text_of(delivery)


def decode_delivery(text: str | bytes) -> Delivery:
    return cast(Delivery, _read_delivery(text))


def encode_fields(fields: Mapping[str, object]) -> str:
    """The fields of an event that is kept."""
    return text_of(dict(fields))


def encode_job(job: Job) -> str:
    """All of a job but whether it is enabled: that stands beside it, and changes with its firings."""
    return text_of(_WrittenJob(*_parts(msgspec.structs.replace(job, enabled=True))))


def decode_job(text: str | bytes, *, enabled: bool) -> Job:
    job = cast(Job, _read_job(text))
    return job if enabled else msgspec.structs.replace(job, enabled=False)


def encode_tally(tally: Tally) -> str:
    return text_of(msgspec.to_builtins(tally))


def decode_tally(text: str | bytes) -> Tally:
    return _read_tally(text)


def encode_route(route: Route) -> str:
    return text_of(_WrittenRoute(*_parts(route)))


def decode_route(text: str | bytes) -> Route:
    return cast(Route, _read_route(text))


def encode_token(token: Token) -> str:
    return text_of(_WrittenToken(*_parts(token)))


def decode_token(text: str | bytes) -> Token:
    """A scope that this version does not know gives no right here; the token counts all the same."""
    stored = cast(_StoredToken, _read_token(text))
    return Token(
        stored.id,
        stored.name,
        stored.digest,
        tuple(_SCOPES[scope] for scope in stored.scopes if scope in _SCOPES),
        stored.created_at,
        None if stored.agent is None else AgentName(stored.agent),
        stored.expires_at,
    )


def encode_text(text: str) -> str:
    """A person's text that is kept by itself: no database refuses anything in it."""
    return text_of(text)


def decode_text(text: str | bytes) -> str:
    return cast(str, _read_text(text))


def said_key(once: str) -> str:
    """The key, among those of runs, that remembers what was said once (H-2)."""
    return _SAID + text_of(once)


# Cursors. What they are is the store's own business; whoever pages on with one gives it back as it was.


def job_cursor(agent: str, name: str) -> str:
    """Where a page of jobs ended."""
    return text_of((agent, name))


def read_job_cursor(cursor: str) -> tuple[str, str]:
    return cast(tuple[str, str], read_cursor(_read_job_cursor, cursor))


def letter_cursor(first_at: int, delivery_id: str) -> str:
    """Where a page of deliveries ended."""
    return text_of((first_at, delivery_id))


def read_letter_cursor(cursor: str) -> tuple[int, str]:
    return cast(tuple[int, str], read_cursor(_read_letter_cursor, cursor))
