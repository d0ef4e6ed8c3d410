"""From what a caller asks for to a run: every field checked, every default filled in."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Literal, TypeAlias, TypedDict, TypeVar

import msgspec

from headway.core.callback_url import CALLBACK, check_callback_url
from headway.core.nesting import MAX_LEVELS, nests_too_deep
from headway.core.session_key import session_key
from headway.model.errors import InvalidInput, UnknownOption
from headway.model.outcome import Attachment
from headway.model.run import (
    AgentName,
    LaneName,
    QueueOptions,
    Route,
    Run,
    RunId,
    Sender,
    SessionKey,
)
from headway.model.settings import MAX_NAME, MAX_TEXT, SOURCE_DEFAULTS, AgentSettings
from headway.model.task import Task
from headway.model.text import is_whole
from headway.model.time import HOUR, Instant, Span, instant_of, span
from headway.model.value import Value
from headway.model.words import Drop, Mode, Source, SteerFallback, Word

Duration: TypeAlias = str | timedelta | Literal[0]
"""What a person may write for a duration: `30s`, `1h30m`, a timedelta, or 0."""

MAX_SELECTOR = 8192
_A_NAME = f"a text of 1 to {MAX_NAME} characters"
CHANNEL_TIMEOUT: Span = HOUR
"""The bound on one attempt of a message from a channel, and of a firing, unless something else is said."""

# Python 3.11 looks members of an enum up slowly; this one is looked up once.
_MESSAGE = Source.MESSAGE

_BOUNDED = frozenset({Source.FIRING, Source.HEARTBEAT})
"""What nobody waits for must not hang for ever."""

Parsed = TypeVar("Parsed")
SomeWord = TypeVar("SomeWord", bound=Word)


class SubmitOptions(TypedDict, total=False):
    """All that can be said about a run besides its agent and text."""

    session: str
    source: Source | str
    lane: str
    priority: int
    attachments: "list[Attachment] | tuple[Attachment, ...]"
    route: Route
    sender: Sender
    message_id: str
    sent_at: datetime
    due: Duration | datetime
    deadline: Duration | datetime
    timeout: Duration
    mode: Mode | str
    cap: int
    drop: Drop | str
    debounce: Duration
    steer_fallback: SteerFallback | str
    max_concurrent: int
    max_attempts: int
    retries: int
    preemptible: bool
    trace_id: str
    idempotency_key: str
    on_repeat: Literal["replay", "retry"]
    task: Task | Mapping[str, object]
    traceparent: str
    callback: str
    resumes: str


QUEUE_OPTIONS = frozenset({"mode", "cap", "drop", "debounce", "steer_fallback", "max_concurrent"})


class _Plain(Value, frozen=True):
    """What a run of one agent and source gets where its request says nothing."""

    lane: LaneName
    priority: int
    max_attempts: int
    retries: int
    timeout: Span | None
    deadline: Span | None
    preemptible: bool


class Composer:
    """Makes the runs of one agent: its settings are filled in where a request says nothing."""

    def __init__(self, agent: AgentName, settings: AgentSettings) -> None:
        self._agent = agent
        self._settings = settings
        self._plain_message = self._plain(Source.MESSAGE, None)

    def compose(
        self,
        run_id: RunId,
        text: str,
        options: Mapping[str, object],
        now: Instant,
        parent: Run | None = None,
    ) -> Run:
        """The run that was asked for, or `InvalidInput` naming the field that is wrong.

        With a parent, that run's turn asked for it.
        """
        if not isinstance(text, str):
            raise InvalidInput("text", text, "a string")
        if not text.isascii() or len(text) > MAX_TEXT:
            check_text(text)
        session = options.get("session")
        if session is None or len(options) > 1 or parent is not None:
            return self._compose(run_id, text, _checked(options), now, parent)
        if not isinstance(session, str) or not 0 < len(session) <= MAX_NAME or "\0" in session:
            raise InvalidInput("session", session, _A_NAME)
        if not session.isascii():
            name_text(session, "session")
        plain = self._plain_message
        return Run(
            run_id,
            self._agent,
            session,  # type: ignore[arg-type]  # a SessionKey() call would cost as much as the check
            _MESSAGE,
            plain.lane,
            plain.priority,
            now,
            text,
            timeout=plain.timeout,
            max_attempts=plain.max_attempts,
            retries=plain.retries,
            preemptible=plain.preemptible,
        )

    def _compose(
        self,
        run_id: RunId,
        text: str,
        said: dict[str, object],
        now: Instant,
        parent: Run | None,
    ) -> Run:
        source = said.pop("source", None) or _usual_source(said, parent)
        assert isinstance(source, Source)
        if parent is not None and source is not Source.DELEGATION:
            raise InvalidInput("source", source, f"{Source.DELEGATION}: a turn asked for this run")
        if "callback" in said and source is not Source.TASK:
            allowed = f"left out: only a {Source.TASK} calls back; replies to others go to channels"
            raise InvalidInput("callback", "…", allowed)
        route = said.get("route")
        plain = self._plain(source, route)
        said.pop("on_repeat", None)
        queue = _queue(said) if said.keys() & QUEUE_OPTIONS else None
        due_at = _instant(said.pop("due", None), now, "due")
        deadline = said.pop("deadline", plain.deadline)
        if "session" not in said:
            said["session"] = _session(run_id, self._agent, route)
        said.setdefault("lane", plain.lane)
        said.setdefault("priority", plain.priority)
        said.setdefault("timeout", plain.timeout)
        said.setdefault("max_attempts", plain.max_attempts)
        said.setdefault("retries", plain.retries)
        said.setdefault("preemptible", plain.preemptible)
        if parent is not None:
            said.setdefault("traceparent", parent.traceparent)
        return Run(
            id=run_id,
            agent=self._agent,
            source=source,
            submitted_at=now,
            text=text,
            due_at=due_at,
            deadline_at=_instant(deadline, due_at or now, "deadline"),
            queue=queue,
            parent=None if parent is None else parent.id,
            ancestors=() if parent is None else (*parent.ancestors, parent.id),
            root=None if parent is None else parent.root or parent.session,
            **said,  # type: ignore[arg-type]
        )

    def _plain(self, source: Source, route: object) -> _Plain:
        settings = self._settings
        defaults = SOURCE_DEFAULTS[source]
        timeout = settings.timeout
        if timeout is None and (route is not None or source in _BOUNDED):
            timeout = CHANNEL_TIMEOUT
        return _Plain(
            lane=settings.lane or defaults.lane,
            priority=defaults.priority,
            max_attempts=_or(settings.max_attempts, defaults.max_attempts),
            retries=_or(settings.retries, defaults.retries),
            timeout=timeout,
            deadline=defaults.deadline,
            preemptible=settings.preemptible,
        )


def compose_together(
    composer: Composer,
    ids: Sequence[RunId],
    requests: Sequence[Mapping[str, object]],
    now: Instant,
) -> list[Run]:
    """The tasks that were asked for all or none, or an error that names the field of the first wrong one (T-5)."""
    runs: list[Run] = []
    for index, (run_id, request) in enumerate(zip(ids, requests, strict=True)):
        options = dict(request)
        text = options.pop("text", "")
        try:
            run = composer.compose(run_id, text, options, now)  # type: ignore[arg-type]  # checked there
            _check_together(run, options, now)
        except InvalidInput as wrong:
            raise inside(wrong, f"tasks[{index}]") from None
        runs.append(run)
    return runs


def _check_together(run: Run, options: Mapping[str, object], now: Instant) -> None:
    if run.source is not Source.TASK:
        raise InvalidInput("source", run.source, f"{Source.TASK}: only tasks come all or none")
    if run.deadline_at is not None and run.deadline_at <= now:
        raise InvalidInput("deadline", options.get("deadline"), "in the future")
    if options.get("on_repeat") == "retry":
        raise InvalidInput("on_repeat", "retry", "replay, where tasks come all or none")


def inside(wrong: InvalidInput, where: str) -> InvalidInput:
    """The same error, of a field in there."""
    wrong.args = (f"{where}.{wrong}",)
    wrong.field = f"{where}.{wrong.field}"
    return wrong


def check_option(name: str, value: object) -> object:
    """One option of a request by itself: the checked value, or `InvalidInput` naming it."""
    return _CHECKS[name](value, name)


def agent_name(value: object) -> AgentName:
    return AgentName(name_text(value, "agent"))


def queue_options(options: Mapping[str, object]) -> QueueOptions:
    """Queue options by name, checked: for a session, a channel, or `/queue`."""
    said: dict[str, object] = {}
    for name, value in options.items():
        if name not in QUEUE_OPTIONS:
            raise UnknownOption(name, QUEUE_OPTIONS)
        if value is not None:
            said[name] = _CHECKS[name](value, name)
    return _queue(said)


def check_text(text: str) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidInput("text", text, "Unicode text, without lone surrogates") from None
    if size > MAX_TEXT:
        raise InvalidInput("text", text, f"at most {MAX_TEXT} bytes of UTF-8")


def _checked(options: Mapping[str, object]) -> dict[str, object]:
    said: dict[str, object] = {}
    for name, value in options.items():
        check = _CHECKS.get(name)
        if check is None:
            raise UnknownOption(name, _CHECKS)
        if value is not None:
            said[name] = check(value, name)
    return said


def _queue(said: dict[str, object]) -> QueueOptions:
    picked = {name: said.pop(name) for name in QUEUE_OPTIONS & said.keys()}
    return QueueOptions(**picked)  # type: ignore[arg-type]


def _usual_source(said: Mapping[str, object], parent: Run | None) -> Source:
    if parent is not None:
        return Source.DELEGATION
    return Source.TASK if "task" in said else Source.MESSAGE


def _or(value: Parsed | None, otherwise: Parsed) -> Parsed:
    return otherwise if value is None else value


def _session(run_id: RunId, agent: AgentName, route: object) -> SessionKey:
    """A message's session follows from its route; anything else is a session of its own (S-1)."""
    if not isinstance(route, Route):
        return SessionKey(f"run:{run_id}")
    return session_key(agent, route)


def _instant(value: object, now: Instant, field: str) -> Instant | None:
    """The instant that a checked `due` or `deadline` means: itself, or a span from now."""
    if isinstance(value, datetime):
        return instant_of(value, field)
    return now + value if isinstance(value, int) else None


def name_text(value: object, field: str) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= MAX_NAME or not is_whole(value):
        raise InvalidInput(field, value, _A_NAME)
    return value


def _is_text(value: object) -> bool:
    return isinstance(value, str) and is_whole(value)


def _optional_text(value: object, field: str) -> str:
    return _text_up_to(MAX_NAME, value, field)


def _text_up_to(longest: int, value: object, field: str) -> str:
    if not isinstance(value, str) or len(value) > longest or not is_whole(value):
        raise InvalidInput(field, value, f"a text of at most {longest} characters")
    return value


def whole_number(lowest: int, highest: int) -> Callable[[object, str], int]:
    def check(value: object, field: str) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not lowest <= value <= highest:
            raise InvalidInput(field, value, f"a whole number from {lowest} to {highest}")
        return value

    return check


def word_of(vocabulary: type[SomeWord]) -> Callable[[object, str], SomeWord]:
    def check(value: object, field: str) -> SomeWord:
        for word in vocabulary:
            if word == value:
                return word
        allowed = ", ".join(word.value for word in vocabulary)
        raise InvalidInput(field, value, f"one of: {allowed}")

    return check


def flag(value: object, field: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(field, value, "True or False")
    return value


def _one_of(*allowed: str) -> Callable[[object, str], object]:
    def check(value: object, field: str) -> object:
        if value not in allowed:
            raise InvalidInput(field, value, f"one of: {', '.join(allowed)}")
        return value

    return check


def _kind(kind: type[Parsed]) -> Callable[[object, str], Parsed]:
    def check(value: object, field: str) -> Parsed:
        if not isinstance(value, kind):
            raise InvalidInput(field, value, f"a {kind.__name__}")
        return value

    return check


def check_channel(channel: str, field: str) -> str:
    """Nobody but Headway speaks on the channel of callbacks: what is sent there is signed as its own (T-4)."""
    if channel == CALLBACK:
        raise InvalidInput(
            field, channel, "another channel: the callbacks of tasks are Headway's own"
        )
    return channel


def _route(value: object, field: str) -> Route:
    if not isinstance(value, Route) or not all(
        map(_is_text, (value.channel, value.account, value.peer, value.thread))
    ):
        raise InvalidInput(field, value, "a Route of texts")
    check_channel(value.channel, field)
    return value


def _sender(value: object, field: str) -> Sender:
    texts = (value.id, value.authority) if isinstance(value, Sender) else (None,)
    if not isinstance(value, Sender) or not all(map(_is_text, texts)):
        raise InvalidInput(field, value, "a Sender of texts")
    return value


def _attachments(value: object, field: str) -> tuple[Attachment, ...]:
    if not isinstance(value, list | tuple) or not all(
        isinstance(item, Attachment) for item in value
    ):
        raise InvalidInput(field, value, "a list of Attachment")
    return tuple(value)


def _task(value: object, field: str) -> Task:
    """A task, or its fields by name. What it asks for is kept as JSON, so it must be that."""
    if isinstance(value, Mapping):
        for name in value:
            if name not in Task.__struct_fields__:
                known = [f"{field}.{each}" for each in Task.__struct_fields__]
                raise UnknownOption(f"{field}.{name}", known)
        if "action" not in value:
            raise InvalidInput(f"{field}.action", None, _A_NAME)
        value = Task(**value)
    elif not isinstance(value, Task):
        raise InvalidInput(field, value, "a Task, or its fields by name")
    name_text(value.action, f"{field}.action")
    for name, text in (("tab_id", value.tab_id), ("selector", value.selector), ("ref", value.ref)):
        _text_up_to(MAX_SELECTOR, text, f"{field}.{name}")
    params = _json(value.params, f"{field}.params")
    return msgspec.structs.replace(value, params=params) if params else value


def _json(value: object, field: str) -> dict[str, object]:
    """Values by name as every store gives them back, whatever they were made of."""
    if nests_too_deep(value):
        raise InvalidInput(field, "…", f"JSON of at most {MAX_LEVELS} levels")
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise InvalidInput(field, value, "an object: values by name")
    try:
        encoded = msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError) as wrong:
        raise InvalidInput(field, value, f"JSON ({wrong})") from None
    if len(encoded) > MAX_TEXT:
        raise InvalidInput(field, value, f"at most {MAX_TEXT} bytes of JSON")
    plain: dict[str, object] = msgspec.json.decode(encoded)
    return plain


def _moment(value: object, field: str) -> Instant:
    if not isinstance(value, datetime):
        raise InvalidInput(field, value, "a datetime with a time zone")
    return instant_of(value, field)


def _when(value: object, field: str) -> datetime | Span:
    """An instant, or a span from now."""
    if isinstance(value, datetime):
        instant_of(value, field)
        return value
    return span(value, field)


_CHECKS: Mapping[str, Callable[[object, str], object]] = {
    "session": name_text,
    "source": word_of(Source),
    "lane": name_text,
    "priority": whole_number(-100, 100),
    "attachments": _attachments,
    "route": _route,
    "sender": _sender,
    "message_id": name_text,
    "sent_at": _moment,
    "due": _when,
    "deadline": _when,
    "timeout": span,
    "mode": word_of(Mode),
    "cap": whole_number(1, 100_000),
    "drop": word_of(Drop),
    "debounce": span,
    "steer_fallback": word_of(SteerFallback),
    "max_concurrent": whole_number(1, 10_000),
    "max_attempts": whole_number(1, 1_000),
    "retries": whole_number(0, 1_000),
    "preemptible": flag,
    "trace_id": _optional_text,
    "idempotency_key": name_text,
    "on_repeat": _one_of("replay", "retry"),
    "task": _task,
    "traceparent": _optional_text,
    "callback": check_callback_url,
    "resumes": name_text,
}

AGENT_CHECKS: Mapping[str, Callable[[object, str], object]] = {
    "weight": whole_number(1, 1_000),
    "steerable": flag,
    "preemptible": flag,
    "provider": name_text,
    "max_inflight": whole_number(0, 1_000_000),
    "runs_per_minute": whole_number(1, 1_000_000_000),
    "tokens_per_minute": whole_number(1, 1_000_000_000),
    "lane": name_text,
    "timeout": span,
    "max_attempts": whole_number(1, 1_000),
    "retries": whole_number(0, 1_000),
    "resume_after": span,
}
"""Options of an agent, each with its check."""
