"""Looking before an agent is woken: a job's gate (X-7), and the first steps of a heartbeat (H-2)."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from headway.calls import call, in_thread
from headway.core import heartbeat
from headway.core.firing import Go, Look, Skip
from headway.model.errors import Unavailable, UnknownName
from headway.model.heartbeat import LAST, HeartbeatSettings
from headway.model.job import AGENT, CHECKLIST, FILE, GATE, Job
from headway.model.payload import Gate
from headway.model.run import AgentName, Route
from headway.model.time import SECOND, Instant, Span
from headway.ports import Store
from headway.runtime.herald import Herald
from headway.runtime.replies import describe
from headway.runtime.routes import Routes

GATE_LASTS: Span = 30 * SECOND
"""So long may a look take; one that takes longer counts as failed."""
_LARGEST_CHECKLIST = 256 * 1024

Function: TypeAlias = Callable[..., object]
GateCommand: TypeAlias = Callable[[Sequence[str], float], Awaitable[bool]]
"""Runs a command within so many seconds and answers whether it said yes."""

CLOSED = "the gate said no"


class GateFailed(Exception):
    """A gate could not say whether to wake its agent."""


class Looks:
    """Knows the functions of the program that jobs name, and asks them."""

    def __init__(
        self,
        store: Store,
        routes: Routes,
        herald: Herald,
        agents: Mapping[AgentName, object],
        known: Callable[[], Iterable[AgentName]],
    ) -> None:
        self._store = store
        self._routes = routes
        self._herald = herald
        self._agents = agents
        """Those that run here."""
        self._known = known
        self.functions: dict[str, Function] = {}
        self.run_command: GateCommand | None = None

    def gates(self) -> Sequence[str]:
        """The gates that can be asked here, as jobs need them (`Job.needs`)."""
        functions = [f"function:{name}" for name in self.functions]
        return [*functions, *(f"{GATE}:{name}" for name in self._known())]

    def heartbeats(self) -> Sequence[str]:
        """The checklists that can be read here, likewise."""
        files = [f"{FILE}:{name}" for name in self._agents]
        return [*files, *(f"{CHECKLIST}:{name}" for name in self._known())]

    def plain(self) -> Sequence[str]:
        """The agents whose jobs can be fired here: those whose settings are known."""
        return [f"{AGENT}:{name}" for name in self._known()]

    def function(self, name: str) -> Function:
        if name not in self.functions:
            raise UnknownName("function", name, self.functions)
        return self.functions[name]

    async def look(self, job: Job, now: Instant) -> Look:
        async with asyncio.timeout(GATE_LASTS / SECOND):
            if job.gate is not None and not await self._is_open(job.gate):
                return Skip(CLOSED)
            if job.heartbeat is not None:
                return await self._look_at_checklist(job.agent, job.heartbeat, now)
        return Go()

    def failed(self, job: Job, error: BaseException) -> str:
        """A look that could not be had wakes nobody. Answers the reason for the log."""
        reason = describe(error)
        self._herald.callback_failed(f"the look of job {job.name!r}", reason)
        return f"the look failed: {reason}"

    async def _is_open(self, gate: Gate) -> bool:
        if gate.function:
            try:
                return bool(await call(self.function(gate.function)))
            except Unavailable as away:
                # The gate's own trouble, not that of our store: asking again is its business.
                raise GateFailed(describe(away)) from away
        if self.run_command is None:
            raise UnknownName("gate", gate.argv[0], ())
        return await self.run_command(gate.argv, GATE_LASTS / SECOND)

    async def _look_at_checklist(
        self, agent: AgentName, settings: HeartbeatSettings, now: Instant
    ) -> Look:
        if settings.checklist:
            checklist = await in_thread(read_checklist, Path(settings.checklist))
        else:
            checklist = await self._store.text(checklist_name(agent))
            checklist = None if checklist is None else checklist[:_LARGEST_CHECKLIST]
        look = heartbeat.look(settings, checklist, now)
        if isinstance(look, heartbeat.Skip):
            return Skip(look.reason)
        return Go(look.prompt, await self._target(agent, settings))

    async def target_of(self, job: Job) -> Route | None:
        """Where a heartbeat's alerts go; of other jobs the job itself says it."""
        return None if job.heartbeat is None else await self._target(job.agent, job.heartbeat)

    async def _target(self, agent: AgentName, settings: HeartbeatSettings) -> Route | None:
        if isinstance(settings.target, Route):
            return settings.target
        return await self._routes.last(agent) if settings.target == LAST else None


def checklist_name(agent: AgentName) -> str:
    """Under which name the store keeps an agent's checklist."""
    return f"checklist:{agent}"


def read_checklist(path: Path) -> str | None:
    """As much of it as an agent is told; None if there is none."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(_LARGEST_CHECKLIST)
    except FileNotFoundError:
        return None
