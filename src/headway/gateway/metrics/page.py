"""The page that Prometheus reads."""

from collections.abc import Iterator

from litestar.types import Receive, Scope, Send
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from headway.gateway.metrics.metrics import Metrics
from headway.gateway.metrics.snapshot import Snapshot

MEDIA_TYPE = "text/plain; version=0.0.4"
_PROCESS = ProcessCollector(registry=None)


class MetricsPage(Collector):
    """All numbers of one moment, as an answer that sends itself."""

    def __init__(self, metrics: Metrics, snapshot: Snapshot) -> None:
        self._metrics = metrics
        self._snapshot = snapshot

    def collect(self) -> Iterator[Metric]:
        yield from self._snapshot.collect()
        yield from self._metrics.collect()
        yield from _PROCESS.collect()

    def text(self) -> bytes:
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        return generate_latest(registry)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002
        body = self.text()
        headers = [
            (b"content-type", MEDIA_TYPE.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"cache-control", b"no-store"),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        if scope.get("method") == "HEAD":
            body = b""
        await send({"type": "http.response.body", "body": body, "more_body": False})
