"""Workers and the machines that they are on, as JSON."""

from collections.abc import Sequence
from typing import Annotated, TypeAlias

from msgspec import Meta

from headway.model.words import WorkerKind, WorkerState
from headway.model.worker import Beat, LaneLoad, Snapshot, Worker
from headway.wire.base import ALLOWED, Answer, Limit, Moment, Request, moment
from headway.wire.names import IS_CURSOR, AgentName, LetterCursor, Name, Number
from headway.wire.runs import RunIdText

WorkerIdText: TypeAlias = Annotated[
    str,
    Meta(
        description="The id of a worker: its run and the number of the attempt.",
        pattern=r"^[0-9A-Za-z._:-]{1,139}$",
        extra={ALLOWED: "the id of a worker, such as 1k3f9a2xq-42.1"},
        examples=["1k3f9a2xq-42.1"],
    ),
]
WorkerCursor: TypeAlias = LetterCursor
SnapshotCursor: TypeAlias = Annotated[
    str,
    Meta(
        description="Where the next page begins: the `cursor` of the page before.",
        pattern=r"^\[(0|[1-9][0-9]{0,17}),(0|[1-9][0-9]{0,17})\]$",
        extra=IS_CURSOR,
    ),
]


class WorkersQuery(Request, frozen=True, kw_only=True):
    """Which workers to list."""

    agent_id: AgentName | None = None
    host: Name | None = None
    state: Annotated[WorkerState | None, Meta(description="Without it: all that are not dead.")] = (
        None
    )
    limit: Limit = 100
    cursor: WorkerCursor | None = None


class WorkerPath(Request, frozen=True, kw_only=True):
    """Which worker, and how many of its latest beats with it."""

    id: WorkerIdText
    beats: Annotated[int, Meta(ge=0, le=1000, description="How many beats at most.")] = 60


class SnapshotsQuery(Request, frozen=True, kw_only=True):
    """Which snapshots of machines to list."""

    host: Name | None = None
    limit: Limit = 100
    cursor: SnapshotCursor | None = None


class WorkerAnswer(Answer, frozen=True, kw_only=True):
    """A process or pane that executes an attempt, as it was when it was last looked at."""

    id: WorkerIdText
    run_id: RunIdText
    attempt: Number
    agent_id: str
    session: str
    kind: WorkerKind
    host: str
    node: Annotated[Number, Meta(description="The node that looks after it.")]
    pid: int
    born: Annotated[
        float,
        Meta(
            description="When its process began, as its machine counts: a reused pid has another."
        ),
    ]
    started_at: Moment
    state: WorkerState
    beat_at: Annotated[Moment, Meta(description="When it last showed a sign of life.")]
    missed: Annotated[Number, Meta(description="How many signs of life in a row were missed.")]
    lines: Annotated[tuple[str, ...], Meta(description="The last that it wrote.")]
    pane: Annotated[str, Meta(description="Where a person can look at it.")]
    adopted: Annotated[
        bool, Meta(description="Whether it outlived the process that had started it.")
    ]
    exit_code: Annotated[
        int | None, Meta(description="How it ended, if that is known; negative: the signal.")
    ]


class BeatAnswer(Answer, frozen=True, kw_only=True):
    """A worker as it was found at one look."""

    at: Moment
    state: WorkerState
    lines: tuple[str, ...]


class WorkerPage(Answer, frozen=True, kw_only=True):
    """Workers, the latest first."""

    workers: tuple[WorkerAnswer, ...]
    cursor: WorkerCursor | None = None


class WorkerDetail(WorkerAnswer, frozen=True, kw_only=True):
    """A worker with its latest beats, the newest first."""

    beats: tuple[BeatAnswer, ...]


class LaneLoadAnswer(Answer, frozen=True, kw_only=True):
    """How full a lane was."""

    name: str
    width: Number
    running: Number
    waiting: Number


class SnapshotAnswer(Answer, frozen=True, kw_only=True):
    """A machine at one moment, as one of its nodes saw it."""

    host: str
    node: Number
    at: Moment
    cpu: Annotated[float, Meta(description="Percent of all cores in use just then.")]
    cores: Number
    memory_used: Annotated[Number, Meta(description="In bytes.")]
    memory_total: Annotated[Number, Meta(description="In bytes.")]
    load: Annotated[float, Meta(description="How many processes wanted to run, over a minute.")]
    workers: Annotated[Number, Meta(description="How many workers of this node were alive.")]
    lanes: tuple[LaneLoadAnswer, ...]


class MachineAnswer(Answer, frozen=True, kw_only=True):
    """The latest snapshot of each machine, by name."""

    machines: tuple[SnapshotAnswer, ...]


class SnapshotPage(Answer, frozen=True, kw_only=True):
    """Snapshots of machines, the latest first."""

    snapshots: tuple[SnapshotAnswer, ...]
    cursor: SnapshotCursor | None = None


def worker_answer(worker: Worker) -> WorkerAnswer:
    return WorkerAnswer(
        id=worker.id,
        run_id=worker.run_id,
        attempt=worker.attempt,
        agent_id=worker.agent,
        session=worker.session,
        kind=worker.kind,
        host=worker.host,
        node=worker.node,
        pid=worker.pid,
        born=worker.born,
        started_at=moment(worker.started_at),
        state=worker.state,
        beat_at=moment(worker.beat_at),
        missed=worker.missed,
        lines=worker.lines,
        pane=worker.pane,
        adopted=worker.adopted,
        exit_code=worker.exit_code,
    )


def worker_detail(worker: Worker, beats: Sequence[Beat]) -> WorkerDetail:
    answer = worker_answer(worker)
    shown = {name: getattr(answer, name) for name in answer.__struct_fields__}
    return WorkerDetail(**shown, beats=tuple(map(beat_answer, beats)))


def beat_answer(beat: Beat) -> BeatAnswer:
    return BeatAnswer(at=moment(beat.at), state=beat.state, lines=beat.lines)


def snapshot_answer(snapshot: Snapshot) -> SnapshotAnswer:
    return SnapshotAnswer(
        host=snapshot.host,
        node=snapshot.node,
        at=moment(snapshot.at),
        cpu=snapshot.cpu,
        cores=snapshot.cores,
        memory_used=snapshot.memory_used,
        memory_total=snapshot.memory_total,
        load=snapshot.load,
        workers=snapshot.workers,
        lanes=tuple(map(_lane_load, snapshot.lanes)),
    )


def machine_answer(snapshots: Sequence[Snapshot]) -> MachineAnswer:
    return MachineAnswer(machines=tuple(map(snapshot_answer, snapshots)))


def _lane_load(lane: LaneLoad) -> LaneLoadAnswer:
    return LaneLoadAnswer(
        name=lane.name, width=lane.width, running=lane.running, waiting=lane.waiting
    )
