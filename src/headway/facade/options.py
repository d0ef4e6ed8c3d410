"""What can be said by name about agents, sessions and limits, and how names of things are checked."""

from collections.abc import Mapping
from typing import TypedDict

import msgspec

from headway.core.request import AGENT_CHECKS, Duration, check_option, whole_number
from headway.model.errors import InvalidInput, NotFound, UnknownOption
from headway.model.run import LaneName, RunId, SessionKey
from headway.model.settings import AgentSettings, Budget, Limits
from headway.model.text import is_whole
from headway.runtime.handle import Handle


class AgentOptions(TypedDict, total=False):
    """All that can be said about an agent besides its name."""

    weight: int
    steerable: bool
    preemptible: bool
    provider: str
    max_inflight: int
    runs_per_minute: int
    tokens_per_minute: int
    lane: str
    timeout: Duration
    max_attempts: int
    retries: int
    resume_after: Duration


class QueueChoices(TypedDict, total=False):
    """The options of one session's queue."""

    mode: str
    cap: int
    drop: str
    debounce: Duration
    steer_fallback: str
    max_concurrent: int


class LimitChoices(TypedDict, total=False):
    """The limits for tasks."""

    max_queue: int
    max_queue_per_agent: int
    max_inflight: int
    max_inflight_per_agent: int


def agent_options(options: Mapping[str, object]) -> dict[str, object]:
    """What was said about an agent, every value checked."""
    said: dict[str, object] = {}
    for name, value in options.items():
        check = AGENT_CHECKS.get(name)
        if check is None:
            raise UnknownOption(name, AGENT_CHECKS)
        if value is not None:
            said[name] = check(value, name)
    return said


def agent_settings(settings: AgentSettings, said: Mapping[str, object]) -> AgentSettings:
    """The agent's settings with everything that was said in code, which wins."""
    rest = dict(said)
    budget = {name: rest.pop(name) for name in Budget.__struct_fields__ if name in rest}
    if budget:
        rest["budget"] = msgspec.structs.replace(settings.budget, **budget)
    return msgspec.structs.replace(settings, **rest)


def check_limits(limits: Mapping[str, object]) -> None:
    known = Limits.__struct_fields__
    for name, value in limits.items():
        if name not in known:
            raise UnknownOption(name, known)
        whole_number(0, 1_000_000)(value, name)


def session_key(key: str) -> SessionKey:
    check_option("session", key)
    return SessionKey(key)


def lane_name(name: str) -> LaneName:
    check_option("lane", name)
    return LaneName(name)


def run_id(run: str | Handle) -> RunId:
    if isinstance(run, Handle):
        return run.id
    if not isinstance(run, str):
        raise InvalidInput("run", run, "the id of a run, or its handle")
    if not is_whole(run):
        # No store could have given it away, and not every store can be asked for it.
        raise NotFound(run)
    return RunId(run)


def check_sought(name: str, value: object) -> None:
    """What a list is narrowed to: any text that a store can be asked for, or None."""
    if value is not None and (not isinstance(value, str) or not is_whole(value)):
        raise InvalidInput(name, value, "a text")
