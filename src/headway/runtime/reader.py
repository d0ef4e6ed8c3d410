"""The reader: answers what callers ask about runs, sessions, lanes and nodes. Nothing here changes anything.

What this node decides about is told by its kernel, everything else by the store.
"""

from collections.abc import Callable, Sequence

from headway.core.kernel import Kernel
from headway.core.why import explain, lane_views, queue_status, session_views
from headway.model.errors import NotFound
from headway.model.run import Route, RunId, SessionKey
from headway.model.views import LaneView, NodeView, RunView, SessionView, Why
from headway.model.words import WAITING_STATES, Rule, State
from headway.ports import Clock, RunPage, RunQuery, Store


class Reader:
    """Reads in the kernel and, for what is not there, in the store."""

    def __init__(
        self, kernel: Kernel, store: Store, clock: Clock, wake: Callable[[], None]
    ) -> None:
        self._kernel = kernel
        self._store = store
        self._clock = clock
        self._wake = wake

    def lanes(self) -> tuple[LaneView, ...]:
        return lane_views(self._kernel)

    def sessions(self) -> tuple[SessionView, ...]:
        return session_views(self._kernel)

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

    async def why(self, run_id: RunId) -> Why:
        """Why a run waits, as of this instant: what is due by now happens first."""
        self._kernel.time_passed(self._clock.now())
        self._wake()
        why = explain(self._kernel, run_id)
        if why is not None:
            return why
        view = await self.find(run_id)
        if view.state not in WAITING_STATES or run_id in self._kernel.stage.runs:
            return Why(run_id, view.state)
        run = view.run
        return Why(
            run_id,
            view.state,
            Rule.ELSEWHERE,
            lane=run.lane,
            agent=run.agent,
            session=run.session,
        )

    async def queue_status(self, session: SessionKey, route: Route | None = None) -> str:
        memory = await self._store.memory_of(session)
        elsewhere = (0, 0)
        if self._store.durable and session not in self._kernel.stage.sessions:
            elsewhere = await self._counts_of(session)
        return queue_status(self._kernel, session, memory, route, elsewhere)

    async def _counts_of(self, session: SessionKey) -> tuple[int, int]:
        """How many runs of a session run and wait, as far as one page of each shows."""
        counts = {
            state: len((await self._store.list(RunQuery(session=session, state=state))).runs)
            for state in (State.RUNNING, State.QUEUED, State.PENDING)
        }
        return counts[State.RUNNING], counts[State.QUEUED] + counts[State.PENDING]
