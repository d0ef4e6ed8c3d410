"""Receivers of callbacks that a test can hold: who was told what, and how many at once."""

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from urllib.parse import urlsplit

from headway import Delivery, Headway, Route, Settings
from headway.model.settings import CallbackSettings, Limits


class Hooks:
    """A channel of callbacks without a network: each host takes its time, and some fail."""

    def __init__(self, takes_s: Mapping[str, float] | None = None) -> None:
        self.takes_s = takes_s or {}
        self.failing: dict[str, Exception] = {}
        self.checked: list[str] = []
        self.told: list[Delivery] = []
        """What was taken."""
        self.came = asyncio.Event()
        self.tried: list[Delivery] = []
        self.now: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.most_in_all = 0

    async def check(self, url: str) -> None:
        self.checked.append(url)

    def receiver(self, route: Route) -> str:
        return urlsplit(route.peer).netloc

    async def send(self, delivery: Delivery) -> None:
        host = self.receiver(delivery.route)
        self.tried.append(delivery)
        self.now[host] += 1
        self.most[host] = max(self.most[host], self.now[host])
        self.most_in_all = max(self.most_in_all, self.now.total())
        try:
            await asyncio.sleep(self.takes_s.get(host, 0.01))
            if host in self.failing:
                raise self.failing[host]
        finally:
            self.now[host] -= 1
        self.told.append(delivery)
        self.came.set()

    async def typing(self, route: Route, on: bool) -> None:
        raise AssertionError((route, on))

    def use(self, hw: Headway) -> None:
        """Take the place of the real one."""
        hw.engine.set_callbacks(self, self.check)

    def notices(self, host: str | None = None) -> list[dict[str, object]]:
        """What was told, in its order."""
        found = [each for each in self.told if host in {None, self.receiver(each.route)}]
        return [json.loads(each.text) for each in found]


def settings(**fields: object) -> Settings:
    """Callbacks allowed, and room for many tasks at once."""
    plenty = Limits(max_queue=1000, max_queue_per_agent=1000, max_inflight=500)
    return Settings(
        **{  # type: ignore[arg-type]
            "callbacks": CallbackSettings(secret="s3cret"),
            "limits": plenty,
            **fields,
        }
    )
