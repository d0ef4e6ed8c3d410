"""Whether this server lives, and whether it may be asked."""

from headway.gateway.access.caller import Caller
from headway.gateway.desk import Desk
from headway.gateway.operations import operation
from headway.model.errors import NotRunning
from headway.wire.health import Health, NothingAsked, Readiness


@operation(None)
async def health(desk: Desk, caller: Caller, asked: NothingAsked) -> Health:  # noqa: ARG001
    """The process lives and answers. It says nothing about the store."""
    return Health(status="ok")


@operation(None)
async def readiness(desk: Desk, caller: Caller, asked: NothingAsked) -> Readiness:  # noqa: ARG001
    """Whether work can be asked for just now; if not, why: not started, draining, the store is away."""
    reasons = _reasons(desk)
    return Readiness(ready=not reasons, reasons=reasons)


def _reasons(desk: Desk) -> tuple[str, ...]:
    try:
        draining, away = desk.hw.draining, desk.hw.store_away
    except NotRunning:
        return ("not started",)
    reasons = ["draining"] if draining else []
    if away is not None:
        reasons.append(f"the store is away: {away}")
    return tuple(reasons)
