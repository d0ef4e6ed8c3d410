"""`headway db`: what a store is at, and bringing it up to date."""

import json
from typing import TYPE_CHECKING

import typer

from headway.cli.exits import EXIT_CODES, errors_told
from headway.cli.options import AsJson, ServersStore

if TYPE_CHECKING:
    from headway.model.views import StoreStatus

db = typer.Typer(
    name="db",
    help="Look after the store: its version, its migrations, what is in it.",
    no_args_is_help=True,
    epilog=EXIT_CODES,
)


@db.command(epilog=EXIT_CODES)
def migrate(store: ServersStore = None) -> None:
    """Bring the store up to this program's version.

    Nodes do it by themselves when they start; this does it before, for
    deployments that want it apart. Migrations only add, so nodes of the
    version before go on working meanwhile. Safe to repeat, and safe to run
    from several places at once.
    """
    from headway.cli.opening import servers_store
    from headway.wiring import open_store, run

    with errors_told():
        done = run(open_store(servers_store(store)).migrate())
    for name in done:
        print(f"ran {name}")
    if not done:
        print("nothing to do: the store is up to date")


@db.command(epilog=EXIT_CODES)
def status(store: ServersStore = None, as_json: AsJson = False) -> None:
    """Show version, pending migrations, runs by state and size.

    Changes nothing.
    """
    from headway.cli.opening import servers_store
    from headway.wiring import open_store, run

    with errors_told():
        found = run(open_store(servers_store(store, writes=False)).status())
    print(_as_json(found) if as_json else _as_text(found))


def _as_text(found: "StoreStatus") -> str:
    from headway.cli.tables import bytes_text

    pending = ", ".join(found.pending) or "none"
    runs = ", ".join(f"{count} {state}" for state, count in found.runs.items() if count)
    return "\n".join(
        (
            f"store     {found.store}",
            f"version   {found.version or 'none yet'} (this program's: {found.newest})",
            f"pending   {pending}",
            f"runs      {runs or 'none'}",
            f"size      {bytes_text(found.size)}",
        )
    )


def _as_json(found: "StoreStatus") -> str:
    return json.dumps(
        {
            "store": found.store,
            "version": found.version,
            "newest": found.newest,
            "pending": list(found.pending),
            "runs": {str(state): count for state, count in found.runs.items()},
            "size": found.size,
        },
        indent=2,
    )
