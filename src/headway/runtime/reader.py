"""The reader: answers what callers ask about runs, sessions, lanes and nodes. Nothing here changes anything.

What this node decides about is told by its kernel, everything else by the store.
"""

from collections.abc import Callable, Sequence

import msgspec

from headway.core.elsewhere import SessionElsewhere
from headway.core.kernel import Kernel
from headway.core.status import status_elsewhere, status_here
from headway.core.why import (
    bar_here,
    explain,
    lane_views,
    queue_status,
    session_view,
    session_views,
)
from headway.model.errors import NotFound
from headway.model.run import Route, Run, RunId, SessionKey
from headway.model.views import LaneView, NodeView, RunView, SessionView, Why
from headway.model.words import WAITING_STATES, Rule, State
from headway.ports import Clock, RunPage, RunQuery, Store
from headway.runtime.places import Places

_UNFINISHED = (State.RUNNING, State.QUEUED, State.PENDING)
_MOST_READ = 1_000
"""So many runs of a session are read at most, in each state."""


class Reader:
    """Reads in the kernel and, for what is not there, in the store."""

    def __init__(
        self, kernel: Kernel, store: Store, clock: Clock, wake: Callable[[], None]
    ) -> None:
        self._kernel = kernel
        self._store = store
        self._clock = clock
        self._wake = wake
        self._places = Places(kernel)

    def lanes(self) -> tuple[LaneView, ...]:
        return lane_views(self._kernel)

    def sessions(self) -> tuple[SessionView, ...]:
        return session_views(self._kernel)

    async def session(self, key: SessionKey) -> SessionView:
        """A session of this node, or as far as the store knows it: there what waits is in order of submission."""
        session = self._kernel.stage.sessions.get(key)
        if session is not None:
            return session_view(session)
        memory = await self._store.memory_of(key)
        running, waiting = await self._unfinished(key)
        return SessionView(
            key,
            tuple(view.id for view in running),
            tuple(view.id for view in waiting),
            options=None if memory is None else memory.options,
            agents=tuple(sorted({view.run.agent for view in (*running, *waiting)})),
        )

    async def status(self, key: SessionKey) -> str:
        """What `/status` answers."""
        now = self._clock.now()
        self._kernel.time_passed(now)
        self._wake()
        here = status_here(self._kernel, key, now)
        if here is not None:
            return here
        running, waiting = await self._unfinished(key)
        return status_elsewhere(running, waiting, await self._elsewhere(key), now)

    async def position(self, run_id: RunId) -> int | None:
        return await self._places.of(run_id)

    async def _unfinished(self, key: SessionKey) -> tuple[list[RunView], list[RunView]]:
        """What runs and what waits of a session that another node decides for, the oldest first."""
        if not self._store.durable:
            return [], []
        found = {state: await self._all(key, state) for state in _UNFINISHED}
        return found[State.RUNNING], found[State.QUEUED] + found[State.PENDING]

    async def _elsewhere(self, key: SessionKey) -> SessionElsewhere:
        glimpse = await self._store.glimpse(key)
        return SessionElsewhere(self._kernel.stage.settings, glimpse, self._clock.now())

    async def _all(self, key: SessionKey, state: State) -> list[RunView]:
        query = RunQuery(session=key, state=state, limit=_MOST_READ)
        return list((await self._store.list(query)).runs)[::-1]

    async def nodes(self) -> Sequence[NodeView]:
        return await self._store.nodes()

    async def runs(self, query: RunQuery) -> RunPage:
        return await self._store.list(query)

    async def find(self, run_id: RunId) -> RunView:
        view = await self._store.find(run_id)
        if view is None:
            raise NotFound(run_id)
        return view

    async def state(self, run_id: RunId) -> State:
        live = self._kernel.stage.runs.get(run_id)
        return live.state if live is not None else (await self.find(run_id)).state

    async def why(self, run_id: RunId, number: int) -> Why:
        """Why a run waits, as of this instant: what is due by now happens first. `number` is this node's."""
        self._kernel.time_passed(self._clock.now())
        self._wake()
        why = explain(self._kernel, run_id)
        if why is not None:
            return why
        view = await self.find(run_id)
        if view.state not in WAITING_STATES or run_id in self._kernel.stage.runs:
            return Why(run_id, view.state)
        elsewhere = await self._elsewhere(view.run.session)
        if elsewhere.runs(run_id):
            return Why(run_id, State.RUNNING)
        # It may have come here meanwhile.
        return explain(self._kernel, run_id) or self._with_bar(
            elsewhere.why(view, number), view.run
        )

    def _with_bar(self, why: Why, run: Run) -> Why:
        """Of what nobody has taken yet, why this node does not."""
        untaken = why.rule is Rule.ELSEWHERE and why.node is None
        bar = bar_here(self._kernel, run) if untaken else None
        return why if bar is None else msgspec.structs.replace(why, rule=bar[0], until=bar[1])

    async def queue_status(self, session: SessionKey, route: Route | None = None) -> str:
        memory = await self._store.memory_of(session)
        elsewhere = (0, 0)
        if session not in self._kernel.stage.sessions:
            running, waiting = await self._unfinished(session)
            elsewhere = len(running), len(waiting)
        return queue_status(self._kernel, session, memory, route, elsewhere)
