"""Cancelling a run, by whichever name it was asked for."""

from headway.gateway.desk import Desk
from headway.gateway.errors import AlreadyOver
from headway.model.views import RunView
from headway.model.words import FINAL_STATES, State


async def cancelled(desk: Desk, view: RunView) -> RunView:
    """How the run is once it was cancelled, or `AlreadyOver` if it ended by itself first (R-2)."""
    if view.state not in FINAL_STATES:
        await desk.hw.cancel(view.id)
        view = await desk.hw.run(view.id)
        if view.state is State.CANCELLED or view.state not in FINAL_STATES:
            return view
    raise AlreadyOver("run", view.id, view.state)
