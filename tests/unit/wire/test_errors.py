"""What is wrong with a request is told by the field, as the caller wrote it (T-2)."""

from collections.abc import Iterator

import msgspec
import pytest
from msgspec import inspect

from headway.wire.base import ALLOWED, Length, Request
from headway.wire.errors import allowed_by, invalid
from headway.wire.heartbeats import HeartbeatRequest
from headway.wire.job_requests import JobRequest
from headway.wire.messages import MessageRequest
from headway.wire.tasks import BatchRequest, TaskRequest


def told(kind: type, body: str) -> tuple[str, str]:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.json.decode(body, type=kind)
    error = invalid(caught.value, kind, msgspec.json.decode(body))
    return error.field, str(error)


JOB = '"agentId":"a","name":"n"'
TASK = '"agentId":"a","action":"b"'


@pytest.mark.parametrize(
    ("kind", "body", "field", "text"),
    [
        (TaskRequest, "{}", "action", "action: this field is required"),
        (TaskRequest, "[]", "body", "body: [] is not allowed; it must be an object"),
        (TaskRequest, f'{{{TASK},"params":3}}', "params", "3 is not allowed; it must be an object"),
        (TaskRequest, f'{{{TASK},"priority":"1"}}', "priority", "it must be a whole number"),
        (TaskRequest, f'{{{TASK},"priority":101}}', "priority", "a whole number <= 100"),
        (TaskRequest, f'{{{TASK},"tabId":7}}', "tabId", "7 is not allowed; it must be a text"),
        (TaskRequest, f'{{{TASK},"onRepeat":"x"}}', "onRepeat", "one of: replay, retry"),
        (TaskRequest, f'{{{TASK},"lane":""}}', "lane", "length >= 1"),
        (TaskRequest, f'{{{TASK},"acton":1}}', "acton", "did you mean 'action'?"),
        (TaskRequest, f'{{{TASK},"tabid":1}}', "tabid", "did you mean 'tabId'?"),
        (
            TaskRequest,
            f'{{{TASK},"callbackUrl":"https://x y"}}',
            "callbackUrl",
            "https://example.com/hook",
        ),
        (TaskRequest, f'{{{TASK},"callbackURL":"https://x"}}', "callbackURL", "callbackUrl"),
        (BatchRequest, '{"agentId":"a","tasks":[]}', "tasks", "a list of length >= 1"),
        (
            BatchRequest,
            '{"agentId":"a","tasks":[{"action":"x"},{"action":"y","params":[]}]}',
            "tasks[1].params",
            "tasks[1].params: [] is not allowed; it must be an object",
        ),
        (
            BatchRequest,
            '{"agentId":"a","tasks":[{"action":"x","prms":1}]}',
            "tasks[0].prms",
            "did you mean 'tasks[0].params'?",
        ),
        (BatchRequest, '{"agentId":"a","tasks":[{}]}', "tasks[0].action", "is required"),
        (MessageRequest, '{"agentId":"a","mode":"x"}', "mode", "one of: queue, followup, collect"),
        (MessageRequest, '{"agentId":"a","sender":{}}', "sender.id", "is required"),
        (MessageRequest, '{"agentId":"a","sender":{"id":1}}', "sender.id", "1 is not allowed"),
        (MessageRequest, '{"agentId":"a","debounce":"x"}', "debounce", "a duration such as 500ms"),
        (TaskRequest, f'{{{TASK},"idempotencyKey":"\\u0000"}}', "idempotencyKey", "no NUL in it"),
        (JobRequest, f'{{{JOB},"every":"6x"}}', "every", "must be a duration such as 500ms, 30s"),
        (HeartbeatRequest, '{"agentId":"a","every":"1q"}', "every", "must be a duration such as"),
        (
            HeartbeatRequest,
            '{"agentId":"a","hours":{"hours":"9-17"}}',
            "hours.hours",
            "two times of day that differ, such as 09:00-17:30",
        ),
        (
            HeartbeatRequest,
            '{"agentId":"a","target":{"channel":"\\u0000"}}',
            "target.channel",
            "no NUL in it",
        ),
        (
            JobRequest,
            f'{{{JOB},"payload":{{"kind":"message","text":" "}}}}',
            "payload.text",
            "it must be a text, not only blanks",
        ),
        (
            JobRequest,
            f'{{{JOB},"payload":{{"kind":"command","argv":["a","\\u0000"]}}}}',
            "payload.argv[1]",
            "it must be a text without NUL in it",
        ),
        (
            JobRequest,
            f'{{{JOB},"payload":{{"kind":"command","argv":["a"],"environment":{{"1":"x"}}}}}}',
            "payload.environment",
            "each name is letters, digits and _ of ASCII, and no digit first",
        ),
        (
            JobRequest,
            f'{{{JOB},"payload":{{"kind":"command","argv":["a"],"environment":{{"A":"\\u0000"}}}}}}',
            "payload.environment",
            "a text without NUL in it",
        ),
    ],
)
def test_t2_the_field_is_named_and_what_is_allowed(
    kind: type, body: str, field: str, text: str
) -> None:
    named, words = told(kind, body)
    assert named == field
    assert text in words
    assert "regex" not in words


def every_request(kind: type = Request) -> Iterator[type]:
    below: list[type] = kind.__subclasses__()
    for each in below:
        yield each
        yield from every_request(each)


def wordless(info: object) -> Iterator[str]:
    """The patterns of which nobody says in words what they take."""
    match info:
        case inspect.Metadata(type=inspect.StrType(pattern=str(pattern)), extra=extra):
            if ALLOWED not in (extra or {}):
                yield pattern
        case inspect.StrType(pattern=str(pattern)):
            yield pattern
        case inspect.Metadata(type=inner):
            yield from wordless(inner)
        case inspect.UnionType(types=kinds):
            for kind in kinds:
                yield from wordless(kind)
        case inspect.StructType(fields=fields):
            for field in fields:
                yield from wordless(field.type)
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
            yield from wordless(item)
        case inspect.DictType(key_type=key, value_type=value):
            yield from wordless(key)
            yield from wordless(value)
        case _:
            pass


def test_t2_every_pattern_is_said_in_words() -> None:
    requests = {*every_request()}
    assert JobRequest in requests
    lacking = {
        kind.__name__: found for kind in requests if (found := [*wordless(inspect.type_info(kind))])
    }
    assert lacking == {}


def test_t2_a_header_is_told_in_words_too() -> None:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert("", Length | None)
    words = allowed_by(caught.value, Length | None)
    assert words.startswith("a duration such as")


def test_a_long_value_is_cut() -> None:
    _, words = told(TaskRequest, f'{{{TASK},"lane":"{"x" * 10_000}"}}')
    assert len(words) < 200
