"""What templates are filled in with."""

import pytest

from headway.core.template import NAMES
from headway.model.task import Task
from headway.runners.values import session_uuid, values_of
from headway.testing import virtual_time
from tests.unit.runners.endpoints import turn_of


@pytest.mark.parametrize("task", [None, Task("click", "t1", "#a", "e1", {"x": 1})])
@virtual_time
async def test_every_name_of_a_template_has_a_value(task: Task | None) -> None:
    values = values_of(turn_of("hi", task, job="j-1"))
    assert values.keys() == NAMES
    assert (values["text"], values["job_id"], values["fence"]) == ("hi", "j-1", "3.7")
    assert (values["tab_id"], values["params"]) == (("t1", {"x": 1}) if task else ("", {}))


def test_a_session_has_the_same_uuid_everywhere() -> None:
    assert session_uuid("claude", "chat:42") == session_uuid("claude", "chat:42")
    assert session_uuid("claude", "chat:42") != session_uuid("codex", "chat:42")
    assert len(session_uuid("claude", "chat:42")) == 36
