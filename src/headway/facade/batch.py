"""Many requests at once: each taken by itself, or all or none (T-5)."""

import asyncio
from collections.abc import Mapping, Sequence

from headway.core.request import agent_name, inside
from headway.model.errors import HeadwayError, InvalidInput, UnknownName
from headway.runtime.engine import Engine
from headway.runtime.handle import Handle


async def submit_all(
    engine: Engine, agent: str, requests: Sequence[Mapping[str, object]], *, atomic: bool
) -> tuple[Handle | HeadwayError, ...]:
    _check(requests)
    if agent_name(agent) not in engine.agents:
        raise UnknownName("agent", agent, engine.agents)
    if atomic:
        return await engine.ask_together(agent, requests)
    # Before any is taken: else one whose host takes long to be looked up would lose its place among the others.
    wrong = await engine.check_callbacks(requests)
    asked = [_ask(engine, agent, request, index, wrong) for index, request in enumerate(requests)]
    return tuple(await asyncio.gather(*asked))


def _check(requests: object) -> None:
    if not isinstance(requests, Sequence) or not all(
        isinstance(each, Mapping) for each in requests
    ):
        raise InvalidInput("tasks", requests, "a list of options by name")


async def _ask(
    engine: Engine,
    agent: str,
    request: Mapping[str, object],
    index: int,
    wrong_callbacks: Mapping[str, InvalidInput],
) -> Handle | HeadwayError:
    options = dict(request)
    text = options.pop("text", "")
    try:
        if (wrong := wrong_callbacks.get(str(options.get("callback")))) is not None:
            raise InvalidInput(wrong.field, wrong.value, wrong.allowed)
        asked = engine.ask(agent, text, options, checked=True)  # type: ignore[arg-type]  # checked there
        return asked if isinstance(asked, Handle) else await asked
    except InvalidInput as wrong:
        return inside(wrong, f"tasks[{index}]")
    except HeadwayError as refused:
        return refused
