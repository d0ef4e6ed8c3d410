"""`headway config check`: all that is wrong with the settings, at once."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.exits import REFUSED
from headway.cli.options import AsJson
from headway.cli.printing import print_all

if TYPE_CHECKING:
    from headway.config import Config
    from headway.model.errors import Refused


def check(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE",
            help="The file to check; without one, the file that `headway serve` would read.",
        ),
    ] = None,
    *,
    named: Annotated[
        str | None,
        typer.Option(
            "--config", "-c", metavar="FILE", help="The same, as `headway serve` takes it."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say whether a server would start with these settings.

    Reads the file and the environment, and names every key that does not
    exist and every value that is not allowed, with its line. Starts nothing.
    """
    from headway.cli.config.reading import deeper_problems, read_config
    from headway.config import lane_warnings
    from headway.model.errors import Refused

    config: Config | None = None
    problems: list[Refused] = []
    try:
        config = read_config(_one_of(file, named))
        problems += deeper_problems(config)
    except Refused as refused:
        problems += _each(refused, "FILE" if named is None else "--config")
    warnings: tuple[str, ...] = ()
    if config is not None:
        warnings = (*config.warnings, *lane_warnings(config.settings, config.sources))
    if as_json:
        _tell_json(config, problems, warnings)
    else:
        _tell(config, problems, warnings)
    if problems:
        raise typer.Exit(REFUSED)


def _one_of(file: str | None, named: str | None) -> str | None:
    from headway.model.errors import InvalidInput

    if file is not None and named is not None:
        raise InvalidInput("--config", named, "left out where FILE is given")
    return named if file is None else file


def _each(refused: "Refused", said: str) -> "tuple[Refused, ...]":
    """All that is wrong; a file that cannot be found is named as it was said."""
    from headway.config import ConfigRefused
    from headway.model.errors import InvalidInput

    if isinstance(refused, InvalidInput) and refused.field == "--config":
        return (InvalidInput(said, refused.value, refused.allowed),)
    return refused.problems if isinstance(refused, ConfigRefused) else (refused,)


def _tell(config: "Config | None", problems: "list[Refused]", warnings: "tuple[str, ...]") -> None:
    for problem in problems:
        print(f"headway: {problem}", file=sys.stderr)
    for warning in warnings:
        print(f"headway: warning: {warning}", file=sys.stderr)
    if config is not None and not problems:
        count = len(config.sources)
        what = f"{count} setting{'' if count == 1 else 's'}"
        print_all(f"{config.file or 'no file'}: {what}, nothing wrong")


def _tell_json(
    config: "Config | None", problems: "list[Refused]", warnings: "tuple[str, ...]"
) -> None:
    import json

    told = {
        "file": (config.file or None) if config is not None else None,
        "problems": [str(problem) for problem in problems],
        "warnings": list(warnings),
    }
    print_all(json.dumps(told, indent=2))
