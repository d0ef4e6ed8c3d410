"""`headway logs`: the log that a server keeps in a file, for people."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headway.cli.exits import errors_told
from headway.cli.printing import print_all
from headway.model.words import LogLevel

if TYPE_CHECKING:
    from headway.logs.reading import Line

LOOK_AGAIN_S = 0.25


def logs(
    *,
    file: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="The log file; without it, the one that is configured."),
    ] = None,
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="Where that is configured (HEADWAY_CONFIG, ./headway.toml or your own unless set).",
        ),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what comes, until Ctrl-C.")
    ] = False,
    count: Annotated[
        int, typer.Option("--lines", "-n", min=0, metavar="N", help="How many of the latest.")
    ] = 100,
    level: Annotated[LogLevel, typer.Option(help="Only these and worse.")] = LogLevel.DEBUG,
    event: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only this kind, such as RunFinished.")
    ] = None,
    run: Annotated[str | None, typer.Option(metavar="ID", help="Only about this run.")] = None,
    session: Annotated[
        str | None, typer.Option(metavar="KEY", help="Only about this session.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the lines as they are in the file.")
    ] = False,
) -> None:
    """Show the latest lines of a server's log, over all its files.

    A server writes one if it is told where: by --log-file, HEADWAY_LOG_FILE,
    or `file` in the log section of headway.toml.
    """
    from headway.logs import Tail, line_matches, newest_lines

    with errors_told():
        path = _path(file, config)
        name = None if event is None else _event_name(event)

    def wanted(line: "Line") -> bool:
        return line_matches(line, level=level, event=name, run=run, session=session)

    tell = _tell_json if as_json else _tell
    with Tail(path) as tail:
        tell(newest_lines(path, count, wanted, tail))
        if follow:
            _follow(lambda: tell(line for line in tail.lines() if wanted(line)))


def _path(file: Path | None, config: str | None) -> Path:
    """The file that was named or configured. It must be there, or have been."""
    from headway.cli.config.reading import read_config
    from headway.logs.files import files_of
    from headway.model.errors import InvalidInput, Refused

    named = "--file"
    if file is None:
        read = read_config(config)
        if not read.server.log.file:
            raise Refused(
                "no log file is configured ([log] file in headway.toml): name one with --file"
            )
        file, named = Path(read.server.log.file), "log.file"
    try:
        file = file.expanduser()
        found = files_of(file)
    except (OSError, RuntimeError):
        # No such user, or no name that a file can have.
        found = []
    if not found:
        raise InvalidInput(named, str(file), "a log that a server has begun")
    return file


def _event_name(written: str) -> str:
    """A kind of event, in any case of letters."""
    from headway.events import CATALOGUE
    from headway.logs.lines import RECORD
    from headway.model.errors import UnknownName
    from headway.model.telling import kind_of

    names = {name.lower(): name for name in (*map(kind_of, CATALOGUE), RECORD)}
    if written.lower() not in names:
        raise UnknownName("--event", written, names.values())
    return names[written.lower()]


def _follow(tell: Callable[[], None]) -> None:
    import time

    try:
        while True:
            tell()
            time.sleep(LOOK_AGAIN_S)
    except KeyboardInterrupt:
        return


def _tell_json(lines: "Iterable[Line]") -> None:
    import msgspec

    for line in lines:
        print_all(msgspec.json.encode(line).decode())


def _tell(lines: "Iterable[Line]") -> None:
    for line in lines:
        print_all(as_text(line))


def as_text(line: "Line") -> str:
    """A line as people read it: when, how bad, what, and what else it says by name. A trace stands below."""
    rest = dict(line)
    at, level, event = (str(rest.pop(name, "")) for name in ("at", "level", "event"))
    trace = rest.pop("trace", None)
    said = "  ".join(
        f"{name}={_shown(value)}" for name, value in rest.items() if value not in (None, "")
    )
    text = f"{at}  {level:<7}  {event}  {said}".rstrip()
    if isinstance(trace, str) and trace:
        text += "".join(f"\n    {row}" for row in trace.rstrip().splitlines())
    return text


def _shown(value: object) -> str:
    import json

    plain = isinstance(value, str) and not any(letter in value for letter in ' \n\t"=')
    return str(value) if plain else json.dumps(value, ensure_ascii=False)
