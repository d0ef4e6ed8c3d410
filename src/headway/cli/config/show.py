"""`headway config show`: every setting, its value, and where that comes from."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.exits import errors_told
from headway.cli.options import AsJson
from headway.cli.printing import print_all

if TYPE_CHECKING:
    from headway.config import Config, Shown


def show(
    *,
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="Instead of HEADWAY_CONFIG, ./headway.toml or the one in your config folder.",
        ),
    ] = None,
    only_set: Annotated[
        bool, typer.Option("--set", help="Only what is set somewhere, no defaults.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Also what has no value, and the names of variables.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the settings that hold, and where each comes from.

    Flags win over the environment, the environment over the file, the file
    over the defaults. Passwords are not shown.
    """
    from headway.cli.config.reading import read_config, shown_with_store

    with errors_told():
        read = read_config(config)
    found = [
        one
        for one in shown_with_store(read)
        if (one.source != _DEFAULT if only_set else everything or not _is_empty(one))
    ]
    for warning in read.warnings:
        print(f"headway: warning: {warning}", file=sys.stderr)
    print_all(_as_json(read, found) if as_json else _as_text(read, found, wide=everything))


_DEFAULT = "default"


def _is_empty(one: "Shown") -> bool:
    """Nothing is set, and nothing holds by default; a lane's reserve of 0 says no more than that."""
    nothing = one.value in (None, "", []) or (one.value == 0 and one.key.endswith(".reserve"))
    return nothing and one.source == _DEFAULT


def _as_text(read: "Config", found: "Sequence[Shown]", *, wide: bool) -> str:
    from headway.cli.tables import table

    head = ["setting", "value", "from"]
    rows = [[one.key, one.text, one.source] for one in found]
    if wide:
        head += ["variable", "reload"]
        for row, one in zip(rows, found, strict=True):
            row += [one.variable, "at once" if one.live else "next start"]
    file = f"file: {read.file or 'none'}\n\n"
    return file + (table(head, rows) if rows else "everything has its default")


def _as_json(read: "Config", found: "Sequence[Shown]") -> str:
    import json

    settings = [
        {
            "key": one.key,
            "value": one.value,
            "source": one.source,
            "variable": one.variable,
            "live": one.live,
        }
        for one in found
    ]
    return json.dumps({"file": read.file or None, "settings": settings}, indent=2)
