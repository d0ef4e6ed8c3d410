"""What can be asked about the machines that nodes run on."""

from headway.gateway.access.caller import Caller
from headway.gateway.desk import Desk
from headway.gateway.operations import operation
from headway.model.words import Scope
from headway.wire.health import NothingAsked
from headway.wire.workers import (
    MachineAnswer,
    SnapshotPage,
    SnapshotsQuery,
    machine_answer,
    snapshot_answer,
)


@operation(Scope.READ)
async def get_machines(desk: Desk, caller: Caller, asked: NothingAsked) -> MachineAnswer:  # noqa: ARG001
    """Show the latest snapshot of each machine: CPU, memory, load, workers and lanes (D-8)."""
    return machine_answer(await desk.hw.machines())


@operation(Scope.READ)
async def list_snapshots(desk: Desk, caller: Caller, asked: SnapshotsQuery) -> SnapshotPage:  # noqa: ARG001
    """List how machines were, minute by minute, the latest first."""
    page = await desk.hw.snapshots(host=asked.host, limit=asked.limit, cursor=asked.cursor)
    return SnapshotPage(snapshots=tuple(map(snapshot_answer, page.snapshots)), cursor=page.cursor)
