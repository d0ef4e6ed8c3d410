"""Writes the reference pages from the code, so that they cannot drift from it.

    python -m tools.reference        (or `make docs`)

Names, types, defaults and what is allowed are read from the code. What a name means is read from its docstring;
where the code has none, it is said in `meanings`. One file per page.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from headway.events import CATALOGUE
from headway.model.server import LogSettings, ServerSettings
from headway.model.settings import Budget, LaneSettings, Limits, QueueSettings, Settings
from tools.reference.cli import cli_page
from tools.reference.config import config_page
from tools.reference.events import events_page
from tools.reference.http import http_page
from tools.reference.meanings import MEANINGS
from tools.reference.options import OWNERS
from tools.reference.rpc import rpc_page
from tools.reference.source import fields_of

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "reference"

PAGES: Mapping[Path, Callable[[], str]] = {
    FOLDER / "cli.md": cli_page,
    FOLDER / "config.md": config_page,
    FOLDER / "events.md": events_page,
    FOLDER / "http.md": http_page,
    FOLDER / "rpc.md": rpc_page,
}
"""Every generated page by its path, and what writes it."""


def unused_meanings() -> list[str]:
    """Entries of `MEANINGS` for names that no page lists any more."""
    known = {event.__name__ for event in CATALOGUE}
    settings = (Settings, LaneSettings, Budget, QueueSettings, Limits, ServerSettings, LogSettings)
    for owner in (*settings, *OWNERS):
        known |= {f"{owner.__name__}.{field.name}" for field in fields_of(owner)}
    return sorted(MEANINGS.keys() - known)
