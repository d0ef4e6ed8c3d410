"""Agents that are browser instances; where those are is said by the test."""

import json
import os

from headway import Headway

_tabs: dict[str, str] = json.loads(os.environ["TEST_INSTANCES"])
_tokens = {_tabs["locked"]: "env:TEST_INSTANCE_TOKEN"}

hw = Headway()
hw.tabs_agent("browser", instances=_tabs, tokens=_tokens)
hw.tabs_agent("stranger", instances=_tabs, token="not-the-one")


async def _owner(tab: str) -> str | None:
    if tab == "boom":
        raise LookupError("the book of tabs is lost")
    return _tabs.get(tab)


hw.tabs_agent("finder", _owner, tokens=_tokens)
