"""What hangs together: a run with all that it started, and a run that goes on where another one's worker died."""

from headway.core.request import SubmitOptions
from headway.core.tree import arranged
from headway.model.errors import CannotResume, NotFound
from headway.model.run import Run, RunId
from headway.model.views import RunTree
from headway.model.words import FINAL_STATES, Source, State
from headway.runtime.engine import Engine

MOST = 1_000
"""So many runs of a tree are shown."""


async def tree(engine: Engine, run_id: RunId) -> RunTree:
    views = await engine.store.descendants(run_id, MOST + 1)
    if not views:
        raise NotFound(run_id)
    return RunTree(arranged(views[:MOST], run_id), more=len(views) > MOST)


async def resumption(engine: Engine, run_id: RunId) -> tuple[Run, SubmitOptions]:
    """The run that is to be resumed, and what is asked for it (W-3): the same, in the same session, anew."""
    view = await engine.find(run_id)
    run = view.run
    if view.state not in FINAL_STATES:
        raise CannotResume(run_id, f"it is {view.state}, not ended")
    if view.state is State.DONE:
        raise CannotResume(run_id, "it is done: send another message instead")
    known = engine.agents.get(run.agent)
    if known is None or known.resume_after is None:
        raise CannotResume(run_id, f"its agent {run.agent!r} has no `resume` command")
    if run.source in {Source.FIRING, Source.HEARTBEAT}:
        raise CannotResume(run_id, "a job made it: have that run again")
    options = SubmitOptions(
        session=run.session, lane=run.lane, priority=run.priority, resumes=run.id
    )
    if run.task is not None:
        options["task"] = run.task
    if run.attachments:
        options["attachments"] = run.attachments
    if run.route is not None:
        options["route"] = run.route
    if run.sender is not None:
        options["sender"] = run.sender
    if run.trace_id:
        options["trace_id"] = run.trace_id
    return run, options
