"""Options that several commands share."""

from typing import Annotated
from urllib.parse import urlsplit, urlunsplit

import typer

StoreUrl = Annotated[
    str,
    typer.Option(
        "--store",
        envvar="HEADWAY_STORE",
        metavar="URL",
        help="sqlite:///path/to/file.db or postgresql://user@host/database.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def without_password(url: str) -> str:
    """An address as it may be shown."""
    parts = urlsplit(url)
    if parts.password is None:
        return url
    login, _, place = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{login.partition(':')[0]}:***@{place}"))
