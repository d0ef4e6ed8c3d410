"""Messages: what people wrote on any channel. Chat commands are seen before anything else (S-9)."""

import asyncio

from headway.core.commands import parse
from headway.core.session_key import session_key
from headway.gateway.access.caller import Caller
from headway.gateway.desk import Desk, end_wait
from headway.gateway.operations import operation
from headway.gateway.operations.sessions import need_place, need_session
from headway.model.errors import InvalidInput, RunCancelled, RunFailed
from headway.model.outcome import Outcome
from headway.model.run import AgentName, Route
from headway.model.time import SECOND, Span
from headway.model.words import Scope, State
from headway.runtime.handle import Handle
from headway.wire.messages import (
    MessageAnswer,
    MessageRequest,
    attachments_of,
    read_wait,
    route_of,
    sender_of,
)
from headway.wire.moments import read_moment, read_when
from headway.wire.runs import outcome_answer

_SAID_AS_IT_IS = (
    "message_id",
    "mode",
    "cap",
    "drop",
    "debounce",
    "steer_fallback",
    "max_concurrent",
    "lane",
    "priority",
)


@operation(Scope.SUBMIT)
async def send(desk: Desk, caller: Caller, asked: MessageRequest) -> MessageAnswer:
    """Hand a message to its agent, or carry out a chat command.

    Chat commands (`/stop`, `/stopall`, `/queue …`, `/status`) are answered at once with their reply. Anything else
    becomes a run; with `wait` the answer has its outcome if it comes in time. A message that comes twice (the same
    `messageId` on the same channel, or the same `idempotencyKey`) is one run.
    """
    caller.need_agent(asked.agent_id)
    wait = None if asked.wait is None else read_wait(asked.wait)
    route = route_of(asked)
    key = _key(asked, route)
    if key is not None and _is_command(asked.text):
        reply = await _command(desk, caller, asked, key, route)
        return MessageAnswer(
            command=True, reply=reply, run_id=None, session=key, state=None, outcome=None
        )
    await need_place(desk, caller, asked.session)
    try:
        handle = await desk.hw.submit(
            asked.agent_id,
            asked.text,
            **_options(asked, caller, key, route),  # type: ignore[arg-type]
        )
    except (RunFailed, RunCancelled) as ended:
        # It was taken and has ended at once: its deadline had passed.
        return _answer(ended.run_id, key, ended.outcome.state, ended.outcome)
    outcome = None if wait is None else await _waited(desk, caller, handle, wait)
    state = outcome.state if outcome is not None else await handle.state()
    return _answer(handle.id, key, state, outcome)


def _key(asked: MessageRequest, route: Route | None) -> str | None:
    """The session it belongs to: the one that was named, or that of its place. None: one of its own."""
    if route is None:
        for field in ("account", "peer", "thread"):
            if getattr(asked, field):
                raise InvalidInput(field, getattr(asked, field), "given together with a channel")
    if asked.session is not None or route is None:
        return asked.session
    return session_key(AgentName(asked.agent_id), route)


def _is_command(text: str) -> bool:
    try:
        return parse(text) is not None
    except InvalidInput:
        # It is answered with what is allowed.
        return True


async def _command(
    desk: Desk, caller: Caller, asked: MessageRequest, key: str, route: Route | None
) -> str | None:
    await need_session(desk, caller, key, unused=True)
    return await desk.hw.command(
        key,
        asked.text,
        sent_at=None if asked.sent_at is None else read_moment(asked.sent_at, "sentAt"),
        message_id=asked.message_id,
        route=route,
    )


def _options(
    asked: MessageRequest, caller: Caller, key: str | None, route: Route | None
) -> dict[str, object]:
    """What the façade is asked: only what was said, so that its defaults are the only ones."""
    options: dict[str, object] = {
        name: value for name in _SAID_AS_IT_IS if (value := getattr(asked, name)) is not None
    }
    if key is not None:
        options["session"] = key
    if route is not None:
        options["route"] = route
    if asked.sender is not None:
        options["sender"] = sender_of(asked)
    if asked.attachments:
        options["attachments"] = attachments_of(asked)
    if asked.sent_at is not None:
        options["sent_at"] = read_moment(asked.sent_at, "sentAt")
    if asked.deadline is not None:
        options["deadline"] = read_when(asked.deadline, "deadline")
    if asked.idempotency_key is not None:
        options["idempotency_key"] = asked.idempotency_key
        options["on_repeat"] = asked.on_repeat
    if caller.traceparent:
        options["traceparent"] = caller.traceparent
    return options


async def _waited(desk: Desk, caller: Caller, handle: Handle, wait: Span) -> Outcome | None:
    """How it ended, if the caller stays and it ends in time."""
    timeout = asyncio.timeout(min(wait, desk.settings.wait_limit) / SECOND)
    desk.waits.add(timeout)
    try:
        async with timeout, asyncio.TaskGroup() as group:
            leaving = group.create_task(_end_when_gone(caller, timeout))
            outcome = await handle.wait()
            leaving.cancel()
            return outcome
    except TimeoutError:
        return None
    finally:
        desk.waits.discard(timeout)


async def _end_when_gone(caller: Caller, timeout: asyncio.Timeout) -> None:
    if caller.gone is not None:
        await caller.gone()
        end_wait(timeout)


def _answer(run_id: str, key: str | None, state: State, outcome: Outcome | None) -> MessageAnswer:
    return MessageAnswer(
        command=False,
        reply=None,
        run_id=run_id,
        session=key or f"run:{run_id}",
        state=state,
        outcome=None if outcome is None else outcome_answer(outcome),
    )
