"""Outages of the store: several parts notice one, and it is told once (D-9)."""

from headway.runtime.herald import Herald


class Outage:
    """Knows which parts cannot reach the store. The first one's trouble is told, and that none has any more."""

    def __init__(self, herald: Herald) -> None:
        self._herald = herald
        self._noticed: set[object] = set()

    def noticed(self, by: object, error: str) -> None:
        if not self._noticed:
            self._herald.store_away(error)
        self._noticed.add(by)

    def over(self, by: object) -> None:
        """This part has reached the store. One that could not yet may be right: then it still lasts."""
        if by in self._noticed:
            self._noticed.remove(by)
            if not self._noticed:
                self._herald.store_back()
