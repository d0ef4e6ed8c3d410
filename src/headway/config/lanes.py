"""Lanes that are named and are not there: no error, as runs have a lane all the same, but hardly meant so."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from headway.config.layers import dotted
from headway.model.settings import MAIN, Settings


def lane_warnings(settings: Settings, sources: Mapping[str, str]) -> Iterator[str]:
    """A warning for each agent whose lane is none that is known: its runs go to `main` (L-1)."""
    for agent, about in settings.agents.items():
        key = dotted(("agents", agent, "lane"))
        if about.lane is None or about.lane in settings.lanes or key not in sources:
            continue
        close = get_close_matches(about.lane, settings.lanes, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        yield (
            f"{sources[key]}: {key}: there is no lane {about.lane!r}, "
            f"so its runs go to {MAIN!r}{hint}"
        )
