"""Endpoints that speak JSON: each attempt is one request (T-3)."""

from typing import TYPE_CHECKING, cast

from headway.core.specs import METHODS
from headway.core.template import (
    Unfillable,
    check_json,
    check_template,
    fill_json,
    fill_url,
    places,
    sample_url,
)
from headway.model.errors import InvalidInput, WorkFailed
from headway.model.outcome import Json, Reply
from headway.model.runner import HttpSpec
from headway.model.task import Task
from headway.runners.answer import parsed, reply_of
from headway.runners.credentials import bearer, headers_of, token_of
from headway.runners.exchange import (
    BAD_ADDRESS,
    Ask,
    Exchange,
    as_header,
    check_address,
    encoded,
)
from headway.runners.values import values_of
from headway.turn import Turn

if TYPE_CHECKING:
    from httpx import AsyncBaseTransport

_WITHOUT_BODY = frozenset({"DELETE", "GET"})
"""They send one only if the configuration has one."""
_OF_TASKS = frozenset({"action", "tab_id", "selector", "ref"})
"""Places that only tasks fill in; the address needs something there."""


class HttpRunner:
    """Sends each attempt to an endpoint, and takes its answer as the reply.

    Without a body of its own in the configuration, the endpoint gets
    `{text, agent, session, runId, traceId, attempt, fence}`, and where there are such things `jobId`, `deadline`,
    `attachments` and `task` `{action, tabId, selector, ref, params}`. `Idempotency-Key` is the run's id: the same
    for all of its attempts.

    An answer that is JSON is the reply's data, any other one its text; `reply` names the text in an answer that
    has one. A status from 400 on is a failure, and so is a redirect: it is not followed.
    """

    def __init__(self, spec: HttpSpec, *, transport: "AsyncBaseTransport | None" = None) -> None:
        self._spec = spec
        self._method = spec.method.upper()
        if self._method not in METHODS:
            raise InvalidInput("method", spec.method, f"one of: {', '.join(sorted(METHODS))}")
        check_template(spec.url, "url")
        self._needs = sorted(places(spec.url) & _OF_TASKS)
        check_address(sample_url(spec.url), "url")
        self._template = cast(Json, spec.body)
        check_json(self._template, "body")
        headers = headers_of(spec.headers)
        self._bearer = bearer(token_of(spec.token, "token", headers))
        self._exchange = Exchange(
            headers=headers,
            max_body=spec.max_body,
            connections=spec.connections,
            transport=transport,
        )

    def check_task(self, task: Task | None) -> None:
        """Refuses at submission what could not be sent: the address has a place that stays empty."""
        for name in self._needs:
            if task is None or not getattr(task, name):
                raise InvalidInput(f"task.{name}", "", "said: the agent's address needs it")

    async def run(self, turn: Turn) -> Reply:
        values = values_of(turn)
        try:
            url = fill_url(self._spec.url, values)
        except Unfillable as wrong:
            raise WorkFailed(str(wrong), BAD_ADDRESS, permanent=True) from wrong
        headers = {"Idempotency-Key": as_header(turn.id), **self._bearer}
        asked = Ask(self._method, url, self._body(turn, values), headers)
        async with self._exchange.ask(turn, asked) as answer:
            body = await answer.read()
        return reply_of(parsed(body, answer.media_type), self._spec.reply)

    async def close(self) -> None:
        await self._exchange.close()

    def _body(self, turn: Turn, values: dict[str, Json]) -> bytes | None:
        if self._template is not None:
            return encoded(fill_json(self._template, values))
        if self._method in _WITHOUT_BODY:
            return None
        return encoded(request_of(turn))


def request_of(turn: Turn) -> dict[str, Json]:
    """What an endpoint is told that has no body of its own in the configuration."""
    asked: dict[str, Json] = {
        "text": turn.text,
        "agent": turn.agent,
        "session": turn.session,
        "runId": turn.id,
        "traceId": turn.trace_id,
        "attempt": turn.attempt,
        "fence": str(turn.fence),
    }
    if turn.job is not None:
        asked["jobId"] = turn.job
    if turn.deadline is not None:
        asked["deadline"] = turn.deadline.isoformat()
    if turn.attachments:
        asked["attachments"] = [
            {"name": each.name, "mediaType": each.media_type, "url": each.url}
            for each in turn.attachments
        ]
    if turn.task is not None:
        asked["task"] = task_of(turn.task)
    return asked


def task_of(task: Task) -> dict[str, Json]:
    """A task as JSON names its fields (T-1)."""
    return {
        "action": task.action,
        "tabId": task.tab_id,
        "selector": task.selector,
        "ref": task.ref,
        "params": task.params,  # type: ignore[dict-item]  # as JSON holds it
    }
