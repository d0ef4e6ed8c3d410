"""The command line of `headway serve`."""

from typing import Annotated

import typer

from headway.cli.exits import errors_told
from headway.cli.options import Grace, NodeName

_STORE = "Store"
_DOOR = "Where it listens"
_WORK = "What it runs"
_LOG = "Log"


def serve(
    *,
    agents: Annotated[
        str | None,
        typer.Option(
            "--agents",
            metavar="MODULE:NAME",
            rich_help_panel=_WORK,
            help="Where your Headway object is: agents:hw is `hw` of agents.py in this folder.",
        ),
    ] = None,
    commands: Annotated[
        bool | None,
        typer.Option(
            "--commands/--no-commands",
            rich_help_panel=_WORK,
            help="Whether to run the commands of jobs (only without --agents, unless said).",
        ),
    ] = None,
    demo: Annotated[
        bool,
        typer.Option(
            "--demo", rich_help_panel=_WORK, help="Add some agents, and traffic that never ends."
        ),
    ] = False,
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            "--database",
            metavar="URL",
            rich_help_panel=_STORE,
            help="sqlite:///path/to/file.db or postgresql://user@host/database "
            "(unless set, what your Headway object names, or SQLite in your data folder).",
        ),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            rich_help_panel=_DOOR,
            help="127.0.0.1 unless set; others only once there are tokens.",
        ),
    ] = None,
    port: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER", rich_help_panel=_DOOR, help="8787 unless set; 0 for any that is free."
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
    log_file: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            rich_help_panel=_LOG,
            help="Also write the log there, for `headway logs`.",
        ),
    ] = None,
    log_level: Annotated[
        str | None,
        typer.Option(metavar="LEVEL", rich_help_panel=_LOG, help="How much is written down."),
    ] = None,
) -> None:
    """Serve agents over HTTP: the scheduler, its timers, the API and its events, in one process.

    Without --agents there are two: `echo` answers what it is told, `command`
    runs the commands of jobs.

    SIGTERM or Ctrl-C: answer 503 to what is new, let running turns finish,
    leave what waits to the next start. A second one cuts what still runs.
    SIGHUP: read the config again. SIGUSR1: drain, and come back in place.
    """
    from headway.cli.worker.command import never_die_of

    never_die_of("SIGUSR1", "SIGHUP")
    with errors_told():
        _check_installed()
        from headway.cli.serve.assembling import Asked, serve_as_asked

        serve_as_asked(
            Asked(
                agents=agents,
                commands=agents is None if commands is None else commands,
                demo=demo,
                name=name,
                config=config,
                flags={
                    "store": store,
                    "server.host": host,
                    "server.port": port,
                    "node.drain_grace": grace,
                    "log.file": log_file,
                    "log.level": log_level,
                },
            )
        )


def _check_installed() -> None:
    """The library needs none of what a server does; say what is missing in one line."""
    from importlib.util import find_spec

    from headway.model.errors import Refused

    needed = ("httptools", "litestar", "prometheus_client", "uvicorn", "websockets")
    missing = [name for name in needed if find_spec(name) is None]
    if missing:
        raise Refused(f"{', '.join(missing)} not installed: pip install 'headway[server]'")
