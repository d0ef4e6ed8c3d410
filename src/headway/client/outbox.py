"""The outbox of a server: what is to be said on channels."""

from headway.client.line import Line
from headway.wire.outbox import LetterPage, LetterPath, LetterRetried, LettersQuery


class Outbox:
    """What waits to be delivered, and what was given up."""

    def __init__(self, line: Line) -> None:
        self._line = line

    async def list(self, query: LettersQuery) -> LetterPage:
        return await self._line.ask("GET", "/outbox", LetterPage, query)

    async def retry(self, letter: str) -> LetterRetried:
        """Deliver a dead letter after all."""
        return await self._line.ask(
            "POST", "/outbox/{id}/retry", LetterRetried, LetterPath(id=letter)
        )
