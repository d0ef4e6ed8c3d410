"""Sessions that are no longer this node's: given back to the store, or lost to another node (D-4, N-17)."""

from collections.abc import Iterable

from headway.core.actions import CancelAttempt, Release
from headway.core.live import LiveRun
from headway.core.session import SessionQueue
from headway.core.stage import Stage
from headway.model.run import RunId, SessionKey
from headway.model.time import MINUTE, Instant, Span
from headway.model.words import Cut

_REMEMBERED: Span = MINUTE
"""How long it is known that a session is on its way back to the store, if nothing more is heard of it."""


class Leaving:
    """Lets sessions go, with all their runs and without any outcome."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.under_way: dict[SessionKey, tuple[int, Instant]] = {}
        """Sessions on their way back to the store: under which epoch, and since when."""

    def has(self, key: SessionKey, epoch: int) -> bool:
        """Whether the session was put back under this epoch, and has not come again since."""
        return key in self.under_way and self.under_way[key][0] == epoch

    def came_again(self, key: SessionKey) -> None:
        self.under_way.pop(key, None)

    def put_back(self, keys: Iterable[SessionKey]) -> list[RunId]:
        """Give these back unless something of them is under way. Answers the runs that left."""
        stage = self._stage
        self._forget_old()
        sessions = {key: stage.sessions[key] for key in keys if key in stage.sessions}
        runs = self._runs_of(sessions)
        left: list[RunId] = []
        for key, session in sessions.items():
            if session.running or session.offspring or any(map(_is_tied, runs[key])):
                continue
            left += self._let_go(session, runs[key])
            self.under_way[key] = (session.epoch, stage.now)
            stage.actions.append(Release(key, session.epoch, session.seen))
        return left

    def lose(self, lost: Iterable[tuple[SessionKey, int]]) -> list[RunId]:
        """Those of these sessions that are here under that epoch. Answers their runs."""
        sessions: dict[SessionKey, SessionQueue] = {}
        for key, epoch in lost:
            session = self._stage.sessions.get(key)
            if session is not None and session.epoch == epoch:
                sessions[key] = session
        runs = self._runs_of(sessions)
        left: list[RunId] = []
        for key, session in sessions.items():
            left += self._let_go(session, runs[key])
        return left

    def give_up(self, session: SessionQueue) -> None:
        """The session was lost and came back: its attempts under the old epoch are to end."""
        stage = self._stage
        for live in session.running:
            lost = CancelAttempt(live.run, live.ticket, Cut.LOST, session.epoch)
            stage.actions.append(lost)
        self._let_go(session, self._runs_of({session.key: session})[session.key])

    def _runs_of(self, sessions: dict[SessionKey, SessionQueue]) -> dict[SessionKey, list[LiveRun]]:
        runs: dict[SessionKey, list[LiveRun]] = {key: [] for key in sessions}
        for live in self._stage.runs.values():
            if live.session.key in runs:
                runs[live.session.key].append(live)
        return runs

    def _let_go(self, session: SessionQueue, runs: list[LiveRun]) -> list[RunId]:
        for live in runs:
            self._stage.forget(live)
        self._stage.silence_session(session)
        del self._stage.sessions[session.key]
        return [live.run.id for live in runs]

    def _forget_old(self) -> None:
        oldest = self._stage.now - _REMEMBERED
        self.under_way = {
            key: (epoch, since) for key, (epoch, since) in self.under_way.items() if since > oldest
        }


def _is_tied(live: LiveRun) -> bool:
    """Whether a turn of this node has taken it, or has started it: its slot may carry it (L-4)."""
    return live.absorbed or live.parent is not None
