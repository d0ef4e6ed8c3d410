"""The core flow through PgBouncer in transaction mode, which takes every statement to another connection."""

import asyncio
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

import headway
from headway import Headway, Settings, Turn
from headway.model.time import MILLISECOND
from tests.ports import free_port
from tests.postgres import PostgresServer

PROGRAM = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")

_WITHIN_S = 60.0

pytestmark = pytest.mark.skipif(
    PROGRAM is None, reason="PgBouncer is not installed (Debian: apt install pgbouncer)"
)


class Bouncer:
    """A PgBouncer in front of a server, with fewer connections than two nodes would like to have."""

    def __init__(self, server: PostgresServer, folder: Path) -> None:
        self.port = free_port()
        ini = folder / "pgbouncer.ini"
        users = folder / "users.txt"
        users.write_text('"postgres" ""\n')
        ini.write_text(
            f"[databases]\npostgres = host={server.host} port={server.port} dbname=postgres\n"
            f"[pgbouncer]\nlisten_addr = {server.host}\nlisten_port = {self.port}\n"
            f"auth_type = trust\nauth_file = {users}\npool_mode = transaction\n"
            "default_pool_size = 4\nmax_client_conn = 100\nunix_socket_dir =\n"
            "ignore_startup_parameters = extra_float_digits\n"
        )
        folder.chmod(0o755)
        self.log = folder / "pgbouncer.log"
        assert PROGRAM is not None
        as_nobody = {"user": "nobody", "group": "nogroup", "extra_groups": []}
        with self.log.open("wb") as log:
            self.popen = subprocess.Popen(
                [PROGRAM, str(ini)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                **(as_nobody if os.geteuid() == 0 else {}),  # type: ignore[call-overload]
            )
        give_up_at = time.monotonic() + _WITHIN_S
        while "process up" not in self.log.read_text():
            assert self.popen.poll() is None, self.log.read_text()
            assert time.monotonic() < give_up_at, self.log.read_text()
            time.sleep(0.02)

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    server = PostgresServer()
    server.start()
    yield server
    server.remove()


@pytest.fixture
def bouncer(server: PostgresServer) -> Iterator[Bouncer]:
    folder = Path(tempfile.mkdtemp(prefix="headway-bouncer-"))
    bouncer = Bouncer(server, folder)
    yield bouncer
    bouncer.popen.terminate()
    bouncer.popen.wait(_WITHIN_S)
    shutil.rmtree(folder)


@pytest.mark.parametrize("listens", [True, False], ids=["direct listener", "polling only"])
def test_the_core_flow_works(server: PostgresServer, bouncer: Bouncer, listens: bool) -> None:
    url = f"{bouncer.url}?listen={quote(server.url, safe='')}" if listens else bouncer.url
    headway.run(_play(url))


async def _play(url: str) -> None:
    """Two nodes: submissions, order, keys, a retry, and a stop from the other node."""
    settings = Settings(poll_every=300 * MILLISECOND, renew_every=500 * MILLISECOND)
    started: list[str] = []
    held = asyncio.Event()

    async def agent(turn: Turn) -> str:
        started.append(f"{turn.session} {turn.text}")
        if turn.text == "fails once" and turn.attempt == 1:
            raise ValueError("the first time")
        if turn.text == "hangs":
            held.set()
            await asyncio.sleep(60)
        await asyncio.sleep(0.005)
        return turn.text

    one, two = (Headway(url, settings=settings, name=name) for name in ("one", "two"))
    for node in (one, two):
        node.agent("a")(agent)
    async with one, two:
        handles = await asyncio.gather(
            *(
                (one, two)[number % 2].submit("a", str(number), session=f"s{number % 10}", cap=99)
                for number in range(200)
            )
        )
        outcomes = await asyncio.gather(*(handle.wait() for handle in handles))
        assert [outcome.text for outcome in outcomes] == [str(number) for number in range(200)]

        first = await one.submit("a", "keyed", idempotency_key="k")
        again = await two.submit("a", "keyed", idempotency_key="k")
        assert first.id == again.id
        assert await again.reply() == "keyed"

        assert (await one.send("a", "fails once", retries=1, session="r")) == "fails once"

        hanging = await one.submit("a", "hangs", session="h")
        await held.wait()
        stopped = await two.stop("h")
        assert stopped.running == 1
        assert (await hanging.wait()).reason == "stopped"
        assert {node.name for node in await two.nodes()} == {"one", "two"}
    for session in range(10):
        mine = [line.split() for line in started if line.startswith(f"s{session} ")]
        numbers = [int(number) for _, number in mine]
        # Each session's runs were submitted through one node each, so they are in order.
        assert numbers == sorted(numbers)
        assert len(numbers) == 20
