"""`headway attach`: look at the pane of a run, and type."""

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from headway.cli.options import ServerUrl, StoreInstead, TokenText
from headway.cli.runs.options import RunId

if TYPE_CHECKING:
    from headway.client import Client
    from headway.model.words import State
    from headway.model.worker import Worker
    from headway.wire.workers import WorkerAnswer


class Spot(NamedTuple):
    """Where a pane is on this machine."""

    socket: str
    session: str


class Seen(NamedTuple):
    """What is known of the run, and of its worker if somebody has seen that."""

    state: "State"
    ended: str
    agent: str
    worker: "Worker | WorkerAnswer | None"


def attach(
    run: RunId,
    *,
    read_only: Annotated[
        bool, typer.Option("--read-only", "-r", help="Only look: what you type is ignored.")
    ] = False,
    show: Annotated[
        bool, typer.Option("--print", help="Print the command that would do it, and no more.")
    ] = False,
    socket: Annotated[
        str, typer.Option(metavar="NAME", help="The tmux server to look in first.")
    ] = "headway",
    store: StoreInstead = None,
    server: ServerUrl = None,
    token: TokenText = None,
) -> None:
    """Show the pane that a run is in, on this machine. Leave it with C-b d: the run goes on.

    If it is not found in tmux, a server or a store says where it is.
    """
    import shlex

    from headway.cli.exits import errors_told
    from headway.runners.pane import attach_command

    with errors_told():
        spot = _found(run, socket, server, token, store)

        command = attach_command(spot.socket, spot.session, read_only=read_only)
        if show:
            print(shlex.join(command))
        else:
            _become(command)


def _found(run: str, socket: str, server: str | None, token: str | None, store: str | None) -> Spot:
    """In tmux itself if it can be asked here, else as a server or a store knows it."""
    from importlib.util import find_spec

    if find_spec("libtmux") is not None:
        return _pane_here(run, socket) or _spot(run, _ask(run, server, token, store))
    return _spot(run, _ask(run, server, token, store))


def _pane_here(run: str, socket: str) -> Spot | None:
    """The pane of its latest attempt, as tmux itself knows it."""
    from headway.model.errors import Refused
    from headway.runners.panes import Panes

    found = [pane for pane in Panes(socket).list_soon() if pane.label.run_id == run]
    if not found:
        return None
    latest = max(found, key=lambda pane: pane.label.attempt)
    if latest.dead:
        raise Refused(f"run {run} has ended; `headway runs show {run}` tells how")
    return Spot(socket, latest.session)


def _ask(run: str, server: str | None, token: str | None, store: str | None) -> Seen:
    from headway.cli.asking import ask
    from headway.cli.options import place_of
    from headway.wiring import run as play

    place = place_of(server, token, store)
    if place.store is not None:
        return play(_in_store(place.store, run))
    return ask(server, token, lambda client: _at_server(client, run))


async def _at_server(client: "Client", run: str) -> Seen:
    from headway.model.errors import Refused

    found = await client.runs.get(run)
    ended = found.outcome
    worker = None
    if found.attempt and ended is None:
        try:
            worker = await client.workers.get(f"{run}.{found.attempt}", beats=0)
        except Refused:
            worker = None  # Nobody has looked at it yet.
    return Seen(found.state, _how(ended and ended.reason), found.agent_id, worker)


async def _in_store(url: str, run: str) -> Seen:
    from headway.cli.opening import reading
    from headway.facade.options import run_id
    from headway.model.errors import Refused

    async with reading(url) as store:
        found = await store.find(run_id(run))
        if found is None:
            raise Refused(f"there is no run {run!r}")
        worker = await store.find_worker(f"{run}.{found.attempt}")
    ended = found.outcome
    return Seen(found.state, _how(ended and ended.reason), found.run.agent, worker)


def _how(reason: object) -> str:
    return f"/{reason}" if reason else ""


def _spot(run: str, seen: Seen) -> Spot:
    """Where its pane is, or why there is none to show here."""
    from headway.model.errors import Refused
    from headway.model.words import FINAL_STATES, State
    from headway.wiring import host_name

    if seen.state in FINAL_STATES:
        raise Refused(f"run {run} has ended: {seen.state}{seen.ended}")
    if seen.state is not State.RUNNING:
        raise Refused(f"run {run} is {seen.state}: it has no pane before it runs")
    worker = seen.worker
    if worker is None:
        raise Refused(
            f"run {run} of agent {seen.agent!r} has no pane on this machine, "
            "and no worker that was seen yet"
        )
    if not worker.pane:
        raise Refused(
            f"run {run} of agent {seen.agent!r} is a {worker.kind}, which has no pane; "
            f"`headway runs watch {run}` shows what it writes"
        )
    if worker.host != host_name():
        raise Refused(
            f"run {run} is on {worker.host}, not on this machine: run `headway attach {run}` there"
        )
    socket, _, session = worker.pane.rpartition(":")
    return Spot(socket, session)


def _become(command: list[str]) -> None:
    import os
    import sys

    from headway.model.errors import Refused
    from headway.runners.panes import MISSING

    if not sys.stdin.isatty() or not sys.stdout.isatty():
        raise Refused("this is no terminal to show a pane in; --print shows the command instead")
    # Within another tmux this one is meant all the same: it is another server.
    environment = {name: value for name, value in os.environ.items() if name != "TMUX"}
    try:
        os.execvpe(command[0], command, environment)
    except FileNotFoundError:
        raise Refused(MISSING) from None
