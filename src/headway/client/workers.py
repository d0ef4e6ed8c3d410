"""The workers of a server's nodes, and the machines that they are on."""

from headway.client.line import Line
from headway.wire.workers import (
    MachineAnswer,
    SnapshotPage,
    SnapshotsQuery,
    WorkerDetail,
    WorkerPage,
    WorkerPath,
    WorkersQuery,
)


class Workers:
    """Processes and panes that execute attempts, as they were last seen."""

    def __init__(self, line: Line) -> None:
        self._line = line

    async def list(self, query: WorkersQuery) -> WorkerPage:
        return await self._line.ask("GET", "/workers", WorkerPage, query)

    async def get(self, worker: str, beats: int = 60) -> WorkerDetail:
        path = WorkerPath(id=worker, beats=beats)
        return await self._line.ask("GET", "/workers/{id}", WorkerDetail, path)

    async def machines(self) -> MachineAnswer:
        """The latest snapshot of each machine."""
        return await self._line.ask("GET", "/machine", MachineAnswer)

    async def snapshots(self, query: SnapshotsQuery) -> SnapshotPage:
        return await self._line.ask("GET", "/machine/snapshots", SnapshotPage, query)
