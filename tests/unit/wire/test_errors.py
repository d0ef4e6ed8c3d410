"""What is wrong with a request is told by the field, as the caller wrote it (T-2)."""

import msgspec
import pytest

from headway.wire.errors import invalid
from headway.wire.messages import MessageRequest
from headway.wire.tasks import BatchRequest, TaskRequest


def told(kind: type, body: str) -> tuple[str, str]:
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.json.decode(body, type=kind)
    error = invalid(caught.value, kind, msgspec.json.decode(body))
    return error.field, str(error)


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
        (TaskRequest, f'{{{TASK},"callbackUrl":"https://x y"}}', "callbackUrl", "matching"),
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
        (MessageRequest, '{"agentId":"a","debounce":"x"}', "debounce", "matching regex"),
    ],
)
def test_t2_the_field_is_named_and_what_is_allowed(
    kind: type, body: str, field: str, text: str
) -> None:
    named, words = told(kind, body)
    assert named == field
    assert text in words


def test_a_long_value_is_cut() -> None:
    _, words = told(TaskRequest, f'{{{TASK},"lane":"{"x" * 10_000}"}}')
    assert len(words) < 200
