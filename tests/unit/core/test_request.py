"""From what a caller asks for to a run: every field checked, every default filled in."""

from datetime import UTC, datetime, timedelta
from typing import get_type_hints

import pytest

from headway.core.request import (
    AGENT_CHECKS,
    CHANNEL_TIMEOUT,
    MAX_SELECTOR,
    QUEUE_OPTIONS,
    Composer,
    SubmitOptions,
    agent_name,
    compose_together,
    queue_options,
)
from headway.facade import AgentOptions, QueueChoices
from headway.model.errors import InvalidInput, UnknownOption
from headway.model.outcome import Attachment
from headway.model.run import AgentName, LaneName, QueueOptions, Route, Run, RunId, Sender
from headway.model.settings import MAX_NAME, MAX_TEXT, AgentSettings
from headway.model.task import Task
from headway.model.time import HOUR, MINUTE, SECOND, instant_of
from headway.model.words import Drop, Mode, Source, SteerFallback

NOW = 1_750_000_000 * SECOND
HELLO: dict[str, object] = {"text": "hi"}
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
LATER = datetime(2030, 1, 1, tzinfo=UTC)
LATER_AT = instant_of(LATER, "later")


def ask(
    text: object = "hello",
    settings: object = None,
    parent: object = None,
    **options: object,
) -> Run:
    assert parent is None or isinstance(parent, Run)
    assert settings is None or isinstance(settings, AgentSettings)
    composer = Composer(AgentName("bob"), settings or AgentSettings())
    return composer.compose(RunId("r1"), text, options, NOW, parent)  # type: ignore[arg-type]


def composed(run_id: str, parent: Run | None = None, **options: object) -> Run:
    composer = Composer(AgentName("bob"), AgentSettings())
    return composer.compose(RunId(run_id), "hello", options, NOW, parent)


GOOD: list[tuple[str, object, str, object]] = [
    ("session", "chat", "session", "chat"),
    ("session", "x" * MAX_NAME, "session", "x" * MAX_NAME),
    ("source", "task", "source", Source.TASK),
    ("source", Source.HEARTBEAT, "source", Source.HEARTBEAT),
    ("lane", "night", "lane", "night"),
    ("priority", -100, "priority", -100),
    ("priority", 100, "priority", 100),
    ("attachments", [Attachment("a")], "attachments", (Attachment("a"),)),
    ("attachments", (), "attachments", ()),
    ("route", Route("telegram", peer="42"), "route", Route("telegram", peer="42")),
    ("sender", Sender("ann"), "sender", Sender("ann")),
    ("message_id", "100", "message_id", "100"),
    ("sent_at", LATER, "sent_at", LATER_AT),
    ("due", LATER, "due_at", LATER_AT),
    ("due", "20m", "due_at", NOW + 20 * MINUTE),
    ("due", timedelta(seconds=1), "due_at", NOW + SECOND),
    ("due", 0, "due_at", NOW),
    ("deadline", LATER, "deadline_at", LATER_AT),
    ("deadline", "1h30m", "deadline_at", NOW + 90 * MINUTE),
    ("timeout", "30s", "timeout", 30 * SECOND),
    ("max_attempts", 1, "max_attempts", 1),
    ("max_attempts", 1000, "max_attempts", 1000),
    ("retries", 0, "retries", 0),
    ("retries", 1000, "retries", 1000),
    ("preemptible", True, "preemptible", True),
    ("trace_id", "", "trace_id", ""),
    ("trace_id", "t" * MAX_NAME, "trace_id", "t" * MAX_NAME),
    ("idempotency_key", "once", "idempotency_key", "once"),
    ("mode", "collect", "queue", QueueOptions(mode=Mode.COLLECT)),
    ("mode", Mode.STEER, "queue", QueueOptions(mode=Mode.STEER)),
    ("cap", 1, "queue", QueueOptions(cap=1)),
    ("cap", 100_000, "queue", QueueOptions(cap=100_000)),
    ("drop", "new", "queue", QueueOptions(drop=Drop.NEW)),
    ("debounce", "2s", "queue", QueueOptions(debounce=2 * SECOND)),
    ("debounce", 0, "queue", QueueOptions(debounce=0)),
    ("steer_fallback", "followup", "queue", QueueOptions(steer_fallback=SteerFallback.FOLLOWUP)),
    ("max_concurrent", 3, "queue", QueueOptions(max_concurrent=3)),
    ("task", Task("click"), "task", Task("click")),
    ("task", {"action": "type", "params": {"text": "hi"}}, "task", Task("type", params=HELLO)),
    ("traceparent", TRACE, "traceparent", TRACE),
    ("resumes", "run-1", "resumes", "run-1"),
]
TEXT = "a text of"
NUMBER = "a whole number from"
DURATION = "a duration such as 500ms"
WHEN = "a datetime with a time zone"
BAD: list[tuple[str, object, str]] = [
    *(
        (name, value, TEXT)
        for name in ("session", "lane", "message_id", "idempotency_key")
        for value in ("", 1, "x" * (MAX_NAME + 1), "a\0b", b"x", ["x"])
    ),
    ("trace_id", 1, TEXT),
    ("trace_id", "t" * (MAX_NAME + 1), TEXT),
    ("source", "cron", "message, task, firing, heartbeat, delegation"),
    ("source", 1, "message, task"),
    *(
        (name, value, NUMBER)
        for name in ("priority", "cap", "max_concurrent", "max_attempts", "retries")
        for value in (True, "1", 1.0, -101, 100_001, [1])
    ),
    ("cap", 0, "1 to 100000"),
    ("max_concurrent", 0, "1 to 10000"),
    ("max_attempts", 0, "1 to 1000"),
    ("retries", -1, "0 to 1000"),
    ("attachments", "a", "a list of Attachment"),
    ("attachments", ["a"], "a list of Attachment"),
    ("route", "telegram", "a Route"),
    ("sender", "ann", "a Sender"),
    ("sent_at", "2030-01-01", WHEN),
    ("sent_at", datetime(2030, 1, 1), WHEN),  # noqa: DTZ001
    ("due", datetime(2030, 1, 1), WHEN),  # noqa: DTZ001
    ("deadline", datetime(2030, 1, 1), WHEN),  # noqa: DTZ001
    *(
        (name, value, DURATION)
        for name in ("due", "deadline", "timeout", "debounce")
        for value in ("soon", "-1s", 5, True, "", "1h 30m", timedelta(-1), 1.5)
    ),
    ("mode", "quue", "queue, followup, collect, steer, interrupt, reject"),
    ("drop", "oldest", "old, new, summarize"),
    ("steer_fallback", "queue", "interrupt, followup"),
    ("preemptible", 1, "True or False"),
    ("preemptible", "yes", "True or False"),
    ("on_repeat", "again", "replay, retry"),
    ("on_repeat", ["retry"], "replay, retry"),
    ("task", "click", "a Task, or its fields by name"),
    ("task", ["click"], "a Task, or its fields by name"),
    ("traceparent", 1, TEXT),
    ("resumes", "", TEXT),
    ("traceparent", "t" * (MAX_NAME + 1), TEXT),
]
BAD_TASKS: list[tuple[object, str, str]] = [
    ({}, "task.action", TEXT),
    ({"action": ""}, "task.action", TEXT),
    ({"action": 5}, "task.action", TEXT),
    (Task("x" * (MAX_NAME + 1)), "task.action", TEXT),
    ({"action": "a", "tab": "1"}, "task.tab", "did you mean 'task.tab_id'"),
    ({"action": "a", "tab_id": 7}, "task.tab_id", TEXT),
    ({"action": "a", "selector": "x" * (MAX_SELECTOR + 1)}, "task.selector", TEXT),
    ({"action": "a", "ref": "a\0b"}, "task.ref", TEXT),
    ({"action": "a", "params": []}, "task.params", "an object"),
    ({"action": "a", "params": {1: 2}}, "task.params", "an object"),
    ({"action": "a", "params": {"x": object()}}, "task.params", "JSON"),
    ({"action": "a", "params": {"x": "\ud800"}}, "task.params", "JSON"),
    ({"action": "a", "params": {"x": "y" * MAX_TEXT}}, "task.params", "at most"),
]


@pytest.mark.parametrize(("option", "value", "field", "becomes"), GOOD)
def test_g_a_good_option_lands_in_its_field(
    option: str, value: object, field: str, becomes: object
) -> None:
    assert getattr(ask(**{option: value}), field) == becomes


@pytest.mark.parametrize(("option", "value", "allowed"), BAD)
def test_g_a_bad_option_is_refused_by_name_with_what_is_allowed(
    option: str, value: object, allowed: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        ask(**{option: value})
    assert refused.value.field == option
    assert refused.value.value == value
    assert allowed in refused.value.allowed
    assert str(refused.value).startswith(f"{option}: ")


@pytest.mark.parametrize(("task", "field", "allowed"), BAD_TASKS)
def test_t1_a_bad_task_is_refused_by_the_name_of_its_field(
    task: object, field: str, allowed: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        ask(task=task)
    assert refused.value.field == field
    assert allowed in str(refused.value)


def test_t1_a_run_with_a_task_is_one() -> None:
    run = ask("", task=Task("click", tab_id="7"))
    assert run.source is Source.TASK
    assert run.deadline_at == NOW + MINUTE
    assert ask(task={"action": "click"}, source="message").source is Source.MESSAGE
    assert ask(task={"action": "click"}, parent=run).source is Source.DELEGATION


def test_d2_what_a_task_asks_for_is_the_same_as_from_every_store() -> None:
    params = {"at": LATER, "pair": (1, 2), "by": {1: "x"}, "large": 1 << 80}
    run = ask(task=Task("a", params=params))
    assert run.task is not None
    assert run.task.params == {
        "at": "2030-01-01T00:00:00Z",
        "pair": [1, 2],
        "by": {"1": "x"},
        "large": 1 << 80,
    }


def test_o3_a_sub_run_continues_the_trace_of_its_parent() -> None:
    parent = ask(traceparent=TRACE)
    assert ask(parent=parent).traceparent == TRACE
    assert ask(parent=parent, traceparent="").traceparent == ""


def together(*requests: dict[str, object]) -> list[Run]:
    composer = Composer(AgentName("bob"), AgentSettings())
    ids = [RunId(f"r{number}") for number in range(len(requests))]
    return compose_together(composer, ids, requests, NOW)


def test_t5_requests_that_come_together_become_tasks_in_their_order() -> None:
    runs = together({"task": {"action": "a"}}, {"source": "task", "text": "b", "priority": 3})
    assert [(run.id, run.text, run.source, run.priority) for run in runs] == [
        ("r0", "", Source.TASK, 0),
        ("r1", "b", Source.TASK, 3),
    ]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"task": {"action": ""}}, "tasks[1].task.action"),
        ({"task": {"action": "a"}, "deadline": "soon"}, "tasks[1].deadline"),
        ({"task": {"action": "a"}, "deadline": 0}, "tasks[1].deadline"),
        (
            {"task": {"action": "a"}, "deadline": datetime(2001, 1, 1, tzinfo=UTC)},
            "tasks[1].deadline",
        ),
        ({"task": {"action": "a"}, "dedline": "1s"}, "tasks[1].dedline"),
        ({"task": {"action": "a"}, "on_repeat": "retry"}, "tasks[1].on_repeat"),
        ({"text": "a message"}, "tasks[1].source"),
        ({"task": {"action": "a"}, "text": 5}, "tasks[1].text"),
    ],
)
def test_t5_what_is_wrong_in_one_of_them_is_named_with_its_place(
    wrong: dict[str, object], field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        together({"task": {"action": "fine"}}, wrong)
    assert refused.value.field == field
    assert str(refused.value).startswith(f"{field}: ")


def test_t4_a_task_keeps_the_address_it_calls_back_to() -> None:
    url = "https://example.com/hook?token=s3cret"
    assert ask(task=Task("click"), callback=url).callback == url
    assert ask(source="task", callback=url).callback == url
    for wrong in (1, "ftp://example.com/?token=s3cret"):
        with pytest.raises(InvalidInput, match="an address such as https://") as refused:
            ask(task=Task("click"), callback=wrong)
        assert "s3cret" not in str(refused.value), "it may hold a secret"
    with pytest.raises(InvalidInput, match="only a task calls back"):
        ask(callback=url)
    with pytest.raises(InvalidInput, match="another channel"):
        ask(route=Route("headway.callback", peer=url))


def test_every_option_has_a_good_and_a_bad_case_here() -> None:
    options = set(get_type_hints(SubmitOptions))
    assert {name for name, *_ in GOOD} | {"on_repeat", "callback"} == options
    assert {name for name, *_ in BAD} | {"callback"} == options


@pytest.mark.parametrize("name", sorted(get_type_hints(SubmitOptions)))
def test_none_means_not_said(name: str) -> None:
    assert ask(**{name: None}) == ask()


def test_on_repeat_is_taken_and_is_no_part_of_the_run() -> None:
    assert ask(on_repeat="retry") == ask(on_repeat="replay") == ask()


def test_an_unknown_option_is_refused_with_a_suggestion() -> None:
    with pytest.raises(UnknownOption, match="did you mean 'mode'"):
        ask(mod="queue")


@pytest.mark.parametrize("text", [None, 1, b"x", ["x"]])
def test_text_must_be_text(text: object) -> None:
    with pytest.raises(InvalidInput, match=r"^text: "):
        ask(text)


def test_a_text_has_at_most_a_mebibyte_of_utf_8() -> None:
    assert len(ask("x" * MAX_TEXT).text) == MAX_TEXT
    for over in ("x" * (MAX_TEXT + 1), "é" * (MAX_TEXT // 2 + 1), "\ud800" * (MAX_TEXT + 1)):
        with pytest.raises(InvalidInput, match=r"^text: "):
            ask(over)


@pytest.mark.parametrize("far", ["9999999d", timedelta(days=999_999_999)])
@pytest.mark.parametrize("field", ["due", "deadline"])
def test_x1_an_instant_that_cannot_be_shown_is_refused(field: str, far: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        ask(**{field: far})
    assert refused.value.field == field


def test_s1_a_session_follows_from_the_route_else_a_run_is_its_own() -> None:
    route = Route("telegram", account="acme", peer="42", thread="7")
    assert ask(route=route).session == "agent:bob:telegram:account:acme:dm:42:thread:7"
    assert ask(route=Route("web")).session == "agent:bob:web:main"
    assert ask().session == "run:r1"
    assert ask(source="task").session == "run:r1"
    assert ask(route=route, session="mine").session == "mine"


@pytest.mark.parametrize(
    ("source", "priority", "lane", "deadline"),
    [
        ("message", 0, "main", None),
        ("task", 0, "main", NOW + MINUTE),
        ("firing", 10, "cron", None),
        ("heartbeat", 20, "cron", None),
        ("delegation", 0, "subagent", None),
    ],
)
def test_f4_f5_l1_defaults_by_source(
    source: str, priority: int, lane: str, deadline: int | None
) -> None:
    run = ask(source=source)
    assert (run.priority, run.lane, run.deadline_at) == (priority, lane, deadline)


def test_d7_c9_attempts_and_retries_by_source() -> None:
    runs = {str(source): ask(source=source) for source in Source}
    found = {source: (run.max_attempts, run.retries) for source, run in runs.items()}
    assert found == {
        "message": (2, 0),
        "task": (1, 0),
        "firing": (1, 3),
        "heartbeat": (2, 0),
        "delegation": (1, 0),
    }


def test_a_sub_run_is_a_delegation_and_names_its_parent() -> None:
    parent = composed("r0", session="chat")
    run = ask(parent=parent)
    assert (run.source, run.parent, run.lane) == (Source.DELEGATION, "r0", "subagent")
    assert ask(parent=parent, source="delegation") == run


def test_x3_a_sub_run_knows_all_above_it_and_the_session_at_the_top() -> None:
    top = composed("r0", session="chat")
    child = composed("r1", parent=top)
    grandchild = composed("r2", parent=child, session="elsewhere")
    assert (top.ancestors, top.root) == ((), None)
    assert (child.ancestors, child.root) == (("r0",), "chat")
    assert (grandchild.ancestors, grandchild.root) == (("r0", "r1"), "chat")
    assert grandchild.parent == "r1"


@pytest.mark.parametrize("source", ["message", "task", "firing", "heartbeat"])
def test_l4_a_sub_run_is_nothing_else(source: str) -> None:
    """A task that waits for a task of its own would wait for its own quota."""
    with pytest.raises(InvalidInput) as refused:
        ask(parent=composed("r0"), source=source)
    assert refused.value.field == "source"


def test_f5_the_deadline_of_a_later_run_counts_from_when_it_is_due() -> None:
    run = ask(source="task", due="1h")
    assert run.deadline_at == NOW + HOUR + MINUTE
    assert ask(due="1h", deadline=LATER).deadline_at == LATER_AT


def test_r3_only_channels_and_firings_have_a_timeout_unless_asked() -> None:
    assert ask().timeout is None
    assert ask(source="task").timeout is None
    assert ask(route=Route("web")).timeout == CHANNEL_TIMEOUT
    assert ask(source="firing").timeout == CHANNEL_TIMEOUT
    assert ask(route=Route("web"), timeout="5s").timeout == 5 * SECOND


def test_the_request_comes_before_the_agent_and_the_agent_before_the_source() -> None:
    settings = AgentSettings(
        lane=LaneName("night"), timeout=SECOND, max_attempts=7, retries=8, preemptible=True
    )
    run = ask(settings=settings, route=Route("web"))
    assert (run.lane, run.timeout, run.max_attempts, run.retries, run.preemptible) == (
        "night",
        SECOND,
        7,
        8,
        True,
    )
    run = ask(
        settings=settings, lane="day", timeout="2s", max_attempts=1, retries=0, preemptible=False
    )
    assert (run.lane, run.timeout, run.max_attempts, run.retries, run.preemptible) == (
        "day",
        2 * SECOND,
        1,
        0,
        False,
    )


def test_d7_an_agent_may_say_no_retries_at_all() -> None:
    assert ask(settings=AgentSettings(retries=0), source="firing").retries == 0


def test_the_short_way_of_a_plain_message_gives_the_same_run() -> None:
    """A message with only a session is composed on a faster path; it must not differ."""
    settings = AgentSettings(lane=LaneName("night"), timeout=SECOND, max_attempts=3, retries=2)
    assert ask(settings=settings, session="s") == ask(
        settings=settings, session="s", source="message"
    )
    with pytest.raises(InvalidInput, match=r"^session: "):
        ask(session="")


@pytest.mark.parametrize("name", ["", None, 5, "x" * 513, "a\0"])
def test_an_agents_name_is_checked(name: object) -> None:
    with pytest.raises(InvalidInput, match=r"^agent: "):
        agent_name(name)


def test_s5_queue_options_are_checked_by_name() -> None:
    assert queue_options({"mode": "collect", "cap": None}) == QueueOptions(mode=Mode.COLLECT)
    with pytest.raises(UnknownOption, match="did you mean 'debounce'"):
        queue_options({"debonce": "1s"})
    with pytest.raises(InvalidInput, match=r"^cap: "):
        queue_options({"cap": 0})


def test_s5_the_options_of_a_queue_are_those_of_the_settings() -> None:
    assert set(QueueOptions.__struct_fields__) == QUEUE_OPTIONS == set(get_type_hints(QueueChoices))


AGENT_GOOD: dict[str, list[object]] = {
    "weight": [1, 1000],
    "steerable": [True],
    "preemptible": [False],
    "provider": ["openai"],
    "max_inflight": [0, 5],
    "runs_per_minute": [1],
    "tokens_per_minute": [1_000_000_000],
    "lane": ["night"],
    "timeout": ["5s"],
    "max_attempts": [1],
    "retries": [0],
    "resume_after": ["60s", 0],
}
AGENT_BAD: dict[str, list[object]] = {
    "weight": [0, 1001, True, 1.5],
    "steerable": [1, "no"],
    "preemptible": ["yes"],
    "provider": ["", 5],
    "max_inflight": [-1, "5"],
    "runs_per_minute": [0, 1.0],
    "tokens_per_minute": [0, True],
    "lane": [""],
    "timeout": ["5", 5],
    "max_attempts": [0],
    "retries": [-1],
    "resume_after": ["soon"],
}


def test_every_agent_option_is_checked() -> None:
    assert (
        set(AGENT_CHECKS) == set(get_type_hints(AgentOptions)) == set(AGENT_GOOD) == set(AGENT_BAD)
    )
    for name, values in AGENT_GOOD.items():
        for value in values:
            AGENT_CHECKS[name](value, name)


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in AGENT_BAD.items() for value in values]
)
def test_x6_x8_a_bad_agent_option_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        AGENT_CHECKS[name](value, name)
    assert refused.value.field == name
