"""A runner whose workers are records of a test: on a machine that several nodes can share, and in virtual time."""

import asyncio
from dataclasses import dataclass, field

from headway import Turn
from headway.model.run import RunId
from headway.model.time import SECOND, Instant
from headway.model.words import WorkerKind
from headway.runtime.clock import clock_for
from headway.runtime.machine import Load
from headway.turn import Sight


@dataclass
class Body:
    """A worker on the machine, whoever started it."""

    run_id: RunId
    attempt: int
    pid: int
    started_at: Instant
    answers: bool = True
    busy: bool | None = None
    lines: tuple[str, ...] = ()
    ended: "asyncio.Future[int]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    @property
    def over(self) -> bool:
        return self.ended.done() and not self.ended.cancelled()


class Field:
    """A machine with the workers that are on it."""

    def __init__(self) -> None:
        self._clock = clock_for(asyncio.get_running_loop())
        self.bodies: dict[tuple[str, int], Body] = {}
        self.killed: list[tuple[str, int]] = []
        self.forgotten: list[tuple[str, int]] = []

    def add(self, run_id: str, attempt: int, *, age_s: float = 0) -> Body:
        started_at = self._clock.now() - round(age_s * SECOND)
        body = Body(RunId(run_id), attempt, 4_000 + len(self.bodies), started_at)
        self.bodies[run_id, attempt] = body
        return body


class FieldRunner:
    """A runner of that machine. Its turns last until their worker has ended."""

    outlives = True

    def __init__(self, field: Field) -> None:
        self.field = field
        self.looks = 0
        self.breaks: Exception | None = None
        self.deaf = False
        """Whether `run` does not notice that its worker is gone."""

    async def run(self, turn: Turn) -> str:
        body = self.field.add(turn.id, turn.attempt)
        try:
            code = await asyncio.shield(body.ended)
        except asyncio.CancelledError:
            await self.end(turn.id, turn.attempt)
            raise
        return f"exit {code}"

    def has(self, run_id: RunId, attempt: int) -> bool:
        return (run_id, attempt) in self.field.bodies

    async def look(self) -> list[Sight]:
        self.looks += 1
        await asyncio.sleep(0)
        if self.breaks is not None:
            raise self.breaks
        return [
            Sight(
                body.run_id,
                body.attempt,
                WorkerKind.COMMAND,
                body.pid,
                float(body.pid),
                body.started_at,
                answers=body.answers,
                over=body.over,
                busy=body.busy,
                lines=body.lines,
                exit_code=body.ended.result() if body.over else None,
            )
            for body in self.field.bodies.values()
        ]

    async def end(self, run_id: RunId, attempt: int) -> None:
        body = self.field.bodies.pop((run_id, attempt), None)
        if body is not None:
            self.field.killed.append((run_id, attempt))
            if not body.ended.done() and not self.deaf:
                body.ended.set_exception(ProcessLookupError("killed"))
                body.ended.exception()

    def forget(self, run_id: RunId, attempt: int) -> None:
        self.field.forgotten.append((run_id, attempt))
        self.field.bodies.pop((run_id, attempt), None)


class CalmMachine:
    """A machine that is always the same."""

    def __init__(self) -> None:
        self.looks = 0

    def look(self) -> Load:
        self.looks += 1
        return Load(12.5, 4, 1_000, 4_000, 0.75)
