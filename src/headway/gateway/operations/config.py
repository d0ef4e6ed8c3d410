"""What can be asked about the server's config."""

from headway.gateway.access.caller import Caller
from headway.gateway.desk import Desk, ReloadPort
from headway.gateway.errors import NotThere
from headway.gateway.operations import operation
from headway.model.words import Scope
from headway.wire.config import (
    ConfigAnswer,
    ReloadAnswer,
    config_answer,
    reload_answer,
)
from headway.wire.health import NothingAsked


@operation(Scope.CONTROL)
async def show_config(desk: Desk, caller: Caller, asked: NothingAsked) -> ConfigAnswer:  # noqa: ARG001
    """Show every setting with its value and where that comes from, without passwords (O-2)."""
    return config_answer(_config(desk, caller).shown())


@operation(Scope.CONTROL)
async def reload_config(desk: Desk, caller: Caller, asked: NothingAsked) -> ReloadAnswer:  # noqa: ARG001
    """Read the config again and apply what has changed, as SIGHUP does. One that is wrong changes nothing."""
    return reload_answer(await _config(desk, caller).reload())


def _config(desk: Desk, caller: Caller) -> ReloadPort:
    caller.need_all_agents()
    if desk.config is None:
        raise NotThere("config", "headway.toml")
    return desk.config
