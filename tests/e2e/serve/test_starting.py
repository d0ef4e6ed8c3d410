"""The start of a server: what it takes, what it refuses, and that a killed one is back at once."""

import asyncio
import fcntl
import os
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from headway.cli.opening import asking
from tests.e2e.gateway.cast import gate
from tests.e2e.gateway.servers import CAST, Server, serving
from tests.e2e.processes import ROOT, Process, ended_at_last
from tests.e2e.serve.asking import status, submit, tasks, until
from tests.ports import free_port


def refused(folder: Path, *options: str) -> str:
    """What a server says that does not start."""
    environment = {**os.environ, "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    done = subprocess.run(
        [sys.executable, "-m", "headway", "serve", *options],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def test_d2_with_nothing_named_it_keeps_its_store_in_the_users_own_folder(tmp_path: Path) -> None:
    data = tmp_path / "data"
    environment = {"XDG_DATA_HOME": str(data), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    port = free_port()
    process = Process("bare", ["headway", "serve", "--port", str(port)], tmp_path, environment)
    server = Server(process, port)
    with ended_at_last([process]), server.http:
        server.wait_until_ready()
        assert (data / "headway" / "headway.db").exists()
        assert (data / "headway").stat().st_mode & 0o777 == 0o700
        said = {"agentId": "echo", "session": "first", "text": "hello"}
        answer = server.http.post("/messages", params={"wait": "60"}, json=said)
        assert answer.json()["outcome"]["text"] == "hello"
        assert f"headway listens on http://127.0.0.1:{port}" in process.printed
        for told in ("store ", "agents  command, echo", "lanes   main 30", "no tokens", "/docs"):
            assert told in process.printed
        assert process.end() == 0


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        told = refused(tmp_path, "--port", str(server.port))
        assert f"127.0.0.1:{server.port}: another program listens there" in told


def test_d2_a_store_that_another_process_owns_is_refused(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/server.db"
    with serving(tmp_path, store) as server:
        told = refused(tmp_path, "--port", "0", "--store", store)
        assert f"process {server.process.pid} owns it already" in told


def test_o4_without_tokens_it_stays_on_this_machine(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/server.db"
    told = refused(tmp_path, "--port", "0", "--host", "0.0.0.0", "--store", store)
    assert "no tokens yet" in told
    assert f"headway tokens create NAME --scope admin --store {store}" in told


def test_o4_with_a_token_it_listens_for_all_and_asks_who_it_is(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/server.db"

    async def make_token() -> str:
        async with asking(store) as beside:
            return (await beside.tokens.create("ops", ["admin"]))[1]

    secret = asyncio.run(make_token())
    with serving(tmp_path, store, "--host", "0.0.0.0") as server:
        assert "1 token; other machines reach it, too (0.0.0.0)" in server.process.printed
        assert status(server, "/lanes") == httpx.codes.UNAUTHORIZED
        allowed = server.http.get("/lanes", headers={"Authorization": f"Bearer {secret}"})
        assert allowed.status_code == httpx.codes.OK


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--port", "eighty"), "--port"),
        (("--port", "70000"), "--port"),
        (("--config", "no-such.toml"), "no-such.toml"),
        (("--agents", "nobody:hw"), "--agents nobody:hw"),
        (("--store", "mysql://x"), "sqlite:///"),
        (("--grace", "soon"), "--grace"),
        (("--host", "no such host!"), "--host"),
    ],
)
def test_what_cannot_be_is_refused_by_name(
    tmp_path: Path, options: tuple[str, ...], told: str
) -> None:
    assert told in refused(tmp_path, *options)


def test_d7_killed_it_is_back_at_once_on_the_same_port(tmp_path: Path) -> None:
    """What waited runs, a message that was cut is tried again, a task that was cut is not (D-7)."""
    with serving(tmp_path) as server:
        held = {
            submit(server, agent, params={"gate": "door"})
            for _ in range(10)
            for agent in ("greedy", "modest")
        }
        until(lambda: tasks(server, "running") == held, "they run")
        waiting = {submit(server, "greedy") for _ in range(5)}
        message = {"agentId": "steady", "session": "chat", "text": "hold door"}
        run = server.http.post("/messages", json=message).raise_for_status().json()["runId"]
        until(lambda: server.http.get(f"/runs/{run}").json()["state"] == "running", "it runs")
        server.process.kill()
    gate("door", tmp_path).touch()
    began = time.monotonic()
    with started_again(server, tmp_path) as server:
        assert time.monotonic() - began < 25, "not when a lease is over"
        until(lambda: tasks(server, "done") == waiting, "what waited is done")
        assert tasks(server, "failed") == held
        outcomes = [server.http.get(f"/tasks/{task}").json()["outcome"] for task in held]
        assert {outcome["reason"] for outcome in outcomes} == {"orphaned"}
        until(lambda: server.http.get(f"/runs/{run}").json()["state"] == "done", "tried again")
        assert server.http.get(f"/runs/{run}").json()["attempt"] == 2
        assert server.process.end() == 0


@contextmanager
def started_again(killed: Server, folder: Path) -> Iterator[Server]:
    """The same server anew: its port, its store."""
    store = f"sqlite:///{folder}/server.db"
    command = ["headway", "serve", "--agents", CAST, "--port", str(killed.port), "--store", store]
    process = Process("again", command, folder)
    server = Server(process, killed.port)
    with ended_at_last([process]), server.http:
        server.wait_until_ready()
        yield server


def test_l6_sigusr1_restarts_in_place_while_it_goes_on_listening(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        held = submit(server, "greedy", params={"gate": "door"})
        until(lambda: tasks(server, "running") == {held}, "it runs")
        server.process.signal(signal.SIGUSR1)
        until(lambda: status(server, "/readyz") == httpx.codes.SERVICE_UNAVAILABLE, "red")
        assert status(server, "/healthz") == httpx.codes.OK
        gate("door", tmp_path).touch()
        server.wait_until_ready()
        after = submit(server, "greedy")
        until(lambda: tasks(server, "done") == {held, after}, "it works as before")
        assert server.process.end() == 0


def test_a_terminal_that_is_closed_ends_it_well(tmp_path: Path) -> None:
    """SIGHUP is a wish to reload, but not from a terminal whose user has gone."""
    terminal, side = os.openpty()
    output = tmp_path / "output"

    def live_at_the_terminal() -> None:
        os.setsid()
        fcntl.ioctl(side, termios.TIOCSCTTY, 0)

    with output.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "headway", "serve", "--port", "0", "--store", "memory://"],
            cwd=ROOT,
            stdin=side,
            stdout=file,
            stderr=file,
            preexec_fn=live_at_the_terminal,  # noqa: PLW1509 - two calls that need no lock
        )
    os.close(side)
    try:
        until(lambda: "listens on" in output.read_text(), "it is ready")
        process.send_signal(signal.SIGHUP)
        until(lambda: "reloaded: nothing changed" in output.read_text(), "somebody is there")
        os.close(terminal)
        assert process.wait(60) == 0, output.read_text()
    finally:
        process.kill()
        process.wait()
