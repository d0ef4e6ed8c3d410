"""Runs of every kind: look at them, cancel them, ask why they wait."""

from headway.gateway.access.caller import Caller
from headway.gateway.desk import Desk
from headway.gateway.operations import operation
from headway.gateway.operations.cancelling import cancelled
from headway.model.errors import NotFound
from headway.model.views import RunTree, RunView
from headway.model.words import Scope
from headway.wire.runs import (
    RunAnswer,
    RunPage,
    RunPath,
    RunsQuery,
    TreeAnswer,
    WhyAnswer,
    run_answer,
    tree_answer,
    why_answer,
)


@operation(Scope.READ)
async def list_runs(desk: Desk, caller: Caller, asked: RunsQuery) -> RunPage:
    """Runs, the newest first, a page at a time."""
    page = await desk.hw.runs(
        agent=caller.only(asked.agent_id),
        session=asked.session,
        state=asked.state,
        source=asked.source,
        limit=asked.limit,
        cursor=asked.cursor,
    )
    return RunPage(runs=tuple(map(run_answer, page.runs)), cursor=page.cursor)


@operation(Scope.READ)
async def get(desk: Desk, caller: Caller, asked: RunPath) -> RunAnswer:
    """One run as it is now."""
    return run_answer(await find(desk, caller, asked.run_id))


@operation(Scope.SUBMIT)
async def cancel(desk: Desk, caller: Caller, asked: RunPath) -> RunAnswer:
    """Cancel a run and all that it started. A running one says `cancelling` until its runner has returned."""
    view = await find(desk, caller, asked.run_id)
    return run_answer(await cancelled(desk, view))


@operation(Scope.READ)
async def why(desk: Desk, caller: Caller, asked: RunPath) -> WhyAnswer:
    """Why a run waits: the rule that holds it, its place in line, and an estimate (X-1)."""
    view = await find(desk, caller, asked.run_id)
    return why_answer(await desk.hw.why(view.id))


@operation(Scope.READ)
async def tree(desk: Desk, caller: Caller, asked: RunPath) -> TreeAnswer:
    """A run and all that it started, each behind the one that asked for it; at most 1,000 of them."""
    view = await find(desk, caller, asked.run_id)
    found = await desk.hw.tree(view.id)
    seen = tuple(one for one in found.branches if caller.sees(one.view.run.agent))
    return tree_answer(RunTree(seen, found.more))


@operation(Scope.SUBMIT)
async def resume(desk: Desk, caller: Caller, asked: RunPath) -> RunAnswer:
    """Go on with the agent session of a run whose worker died: a new run, with all its tries before it (W-3)."""
    view = await find(desk, caller, asked.run_id)
    handle = await desk.hw.resume(view.id)
    return run_answer(await desk.hw.run(handle.id))


async def find(desk: Desk, caller: Caller, run_id: str) -> RunView:
    """A run of this caller; whether there is another one of that id is nobody's business."""
    view = await desk.hw.run(run_id)
    if not caller.sees(view.run.agent):
        raise NotFound(run_id)
    return view
