"""A receiver of callbacks on a real socket, in a thread: what came, how often, and how many at once."""

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from headway.channels import verify_signature

SECRET = "words that only the two know"
ENVIRONMENT = {"HEADWAY_CALLBACKS_SECRET": SECRET, "HEADWAY_CALLBACKS_PRIVATE": "true"}
_PATIENCE_S = 150.0
"""More than the minute for which a letter is held by whoever died with it."""


class Receiver:
    """Takes `takes_s` for each notice, and answers with `status`."""

    def __init__(self, port: int, takes_s: float) -> None:
        self.status = 204
        self.takes_s = takes_s
        self.came: Counter[str] = Counter()
        """How often each id came."""
        self.notices: dict[str, dict[str, object]] = {}
        self.forged = 0
        self.most = 0
        self._now = 0
        self._changed = threading.Condition()
        self._server = ThreadingHTTPServer(
            ("127.0.0.1", port), self._handler(), bind_and_activate=False
        )
        self._server.daemon_threads = True
        self._server.allow_reuse_address = True
        self._server.server_bind()
        self._server.server_activate()
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}/hook?token=t0ken"

    def wait_for(self, count: int) -> None:
        """Until so many different notices have come."""
        with self._changed:
            enough = self._changed.wait_for(lambda: len(self.came) >= count, _PATIENCE_S)
        assert enough, f"{len(self.came)} of {count} notices came"

    def serve(self) -> None:
        self._server.serve_forever(poll_interval=0.05)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def take(self, headers: dict[str, str], body: bytes) -> int:
        with self._changed:
            self._now += 1
            self.most = max(self.most, self._now)
        time.sleep(self.takes_s)
        stamp, signature = headers["x-headway-timestamp"], headers["x-headway-signature"]
        notice = json.loads(body)
        with self._changed:
            self._now -= 1
            self.forged += not verify_signature(SECRET, stamp, body, signature)
            self.came[headers["x-headway-id"]] += 1
            self.notices[notice["taskId"]] = notice
            self._changed.notify_all()
        return self.status

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                self.send_response(receiver.take(headers, body))
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Nobody reads it."""

        return Handler


@contextmanager
def receiving(port: int = 0, takes_s: float = 0.0) -> Iterator[Receiver]:
    receiver = Receiver(port, takes_s)
    thread = threading.Thread(target=receiver.serve, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.close()
        thread.join()
