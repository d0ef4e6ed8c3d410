"""The command line of `headway worker`."""

from typing import Annotated

import typer

from headway.cli.exits import errors_told
from headway.cli.jobs.options import COMMAND_AGENT
from headway.cli.options import Grace, NodeName


def worker(
    *,
    agents: Annotated[
        str | None,
        typer.Option(
            "--agents",
            metavar="MODULE:NAME",
            help="Where your Headway object is: agents:hw is `hw` of agents.py in this folder.",
        ),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            metavar="URL",
            help="Use this store instead of the object's own: sqlite:///file.db, postgresql://host/db.",
        ),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="The config file (HEADWAY_CONFIG, or headway.toml here or in your config folder).",
        ),
    ] = None,
    name: NodeName = None,
    grace: Grace = None,
    commands: Annotated[
        bool,
        typer.Option(
            "--commands",
            help=f"Also run the commands of jobs, as agent {COMMAND_AGENT!r}; then --agents may be left out.",
        ),
    ] = False,
    commands_as: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The same, and the agent is called so."),
    ] = None,
) -> None:
    """Run your agents as one node of many, until a signal says otherwise.

    Start as many as you like, on as many machines: all share the work in
    the store, and each session stays in order whichever nodes run it.
    Agents that are programs or endpoints may stand in headway.toml.

    SIGTERM or Ctrl-C: take nothing new, let running turns finish, leave what
    waits to the other nodes or the next start. A second one cuts what still
    runs. SIGUSR1: do the same, and come back in place.
    """
    from headway.cli.worker.agents import agents_of, check_runnable
    from headway.cli.worker.configuring import configure, read
    from headway.cli.worker.service import Service
    from headway.wiring import run

    if commands and commands_as is None:
        commands_as = COMMAND_AGENT
    _log_to_stderr()
    never_die_of("SIGUSR1")
    with errors_told():
        settings = read(config, {"store": store, "node.drain_grace": grace})
        if agents is None and commands_as is None and not settings.settings.runners:
            raise typer.BadParameter(
                "say which agents to run, or --commands, or put some into headway.toml",
                param_hint="'--agents'",
            )
        headway = agents_of(agents, commands_as)
        configure(headway, settings, store)
        if name is not None:
            headway.use_name(name)
        check_runnable(agents, headway)
        run(Service(headway, headway.settings.drain_grace).serve())


def _log_to_stderr() -> None:
    """Notable events, one line of JSON each, as they come from the log; a user's module may set up its own."""
    import logging

    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    logging.getLogger("headway").addHandler(handler)


def never_die_of(*names: str) -> None:
    """A wish that comes before the node is ready, or after it has ended, means nothing."""
    import signal

    for name in names:
        if (number := getattr(signal, name, None)) is not None:
            signal.signal(number, signal.SIG_IGN)
