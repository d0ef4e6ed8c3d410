"""Asks a server again and again for what the screen shows, and listens to what happens."""

import asyncio
from collections import deque

import msgspec

from headway.cli.top.board import Board, Note
from headway.cli.top.notes import SEEN, note_of
from headway.client import Client
from headway.model.errors import HeadwayError, Unavailable
from headway.model.time import SECOND, Instant
from headway.runtime.clock import SystemClock
from headway.wire.events import EventQuery
from headway.wire.nodes import NodesQuery
from headway.wire.sessions import SessionsQuery
from headway.wire.workers import WorkersQuery

REFRESH_S = 1.0
_NOTES = 100
_FIRST_NOTES = 20
_WINDOW = 10 * SECOND
_MOST_SESSIONS = 200
_MOST_WORKERS = 200
_AGAIN_S = 2.0
_TOGETHER = 6
"""News that is among the latest already is counted there: a busy agent does not fill the screen."""


class Watcher:
    """Keeps a board up to date."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._clock = SystemClock()
        self._notes: deque[Note] = deque(maxlen=_NOTES)
        self._ended: deque[Instant] = deque()
        self._began_at = self._clock.wall()
        self._listening = False
        self.board = Board(self._began_at, client.url)

    async def look(self) -> Board:
        """Ask once. Raises if the server does not answer."""
        stats, sessions, nodes, workers = await asyncio.gather(
            self._client.tasks.stats(),
            self._client.sessions.list(SessionsQuery(limit=_MOST_SESSIONS)),
            self._client.server.nodes(NodesQuery()),
            self._client.workers.list(WorkersQuery(limit=_MOST_WORKERS)),
        )
        now = self._clock.wall()
        self.board = Board(
            now,
            self._client.url,
            stats,
            sessions.sessions,
            nodes.nodes,
            tuple(self._notes),
            self._rate(now) if self._listening else None,
            workers=workers.workers,
        )
        return self.board

    async def look_on(self) -> None:
        """For ever. A server that does not answer is said on the board, and asked again."""
        while True:
            try:
                await self.look()
            except Unavailable as away:
                self.board = msgspec.structs.replace(
                    self.board, at=self._clock.wall(), trouble=str(away)
                )
            await asyncio.sleep(REFRESH_S)

    async def listen(self) -> None:
        """For ever: what happens goes onto the board."""
        self._listening = True
        query = EventQuery(event=SEEN, last=_FIRST_NOTES)
        while True:
            try:
                async for heard in self._client.events(query):
                    self.note(heard.data)
            except Unavailable:
                await asyncio.sleep(_AGAIN_S)

    async def remember(self) -> None:
        """What has happened lately, for who looks only once."""
        query = EventQuery(event=SEEN, last=_FIRST_NOTES, follow=False)
        try:
            async for heard in self._client.events(query):
                self.note(heard.data)
        except HeadwayError:
            return  # The picture has its other parts all the same.

    def note(self, data: dict[str, object]) -> None:
        """An event has come."""
        note = note_of(data)
        if data.get("event") == "RunFinished" and note is not None:
            self._ended.append(note.at)
        if note is None:
            return
        for before in list(self._notes)[:_TOGETHER]:
            if before.same == note.same:
                note = msgspec.structs.replace(note, count=before.count + 1)
                self._notes.remove(before)
                break
        self._notes.appendleft(note)
        self.board = msgspec.structs.replace(self.board, notes=tuple(self._notes))

    def _rate(self, now: Instant) -> float:
        """Runs that ended in the latest seconds; the server's clock and ours may differ a little."""
        while self._ended and self._ended[0] < now - _WINDOW:
            self._ended.popleft()
        window = max(SECOND, min(_WINDOW, now - self._began_at))
        recent = sum(at >= self._began_at for at in self._ended)
        return recent / (window / SECOND)
