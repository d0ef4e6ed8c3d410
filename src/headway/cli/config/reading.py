"""Reads the config as a server would, and checks what only the rooms above the config can."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headway.config import Config, Shown
    from headway.model.errors import InvalidInput


def read_config(path: str | None) -> "Config":
    """The config of this file, or of the one that a server would find."""
    import os

    from headway.config import load

    return load(path, os.environ)


def shown_with_store(config: "Config") -> "tuple[Shown, ...]":
    """Every setting; where no store is named, the one that a server then has."""
    import msgspec

    from headway.cli.serve.places import default_store
    from headway.config import shown

    store, *others = shown(config)
    if store.value is None:
        store = msgspec.structs.replace(store, value=default_store())
    return (store, *others)


def deeper_problems(config: "Config") -> "list[InvalidInput]":
    """A store that there cannot be, a time zone that other machines do not know, an agent that cannot be run."""
    from headway.core.schedule import zone_name
    from headway.core.specs import check_spec
    from headway.model.errors import InvalidInput
    from headway.wiring import check_runner, check_store

    found: list[InvalidInput] = []
    try:
        if config.store:
            check_store(config.store, _place(config, "store"))
    except InvalidInput as wrong:
        found.append(wrong)
    try:
        zone_name(config.settings.tz, _place(config, "node.tz"))
    except InvalidInput as wrong:
        found.append(wrong)
    for name, spec in config.settings.runners.items():
        try:
            check_spec(spec, f"agents.{name}.")
            check_runner(spec, name)
        except InvalidInput as wrong:
            found.append(wrong)
    return found


def _place(config: "Config", key: str) -> str:
    source = config.sources.get(key, "default")
    return source if source.startswith(("HEADWAY_", "--")) else f"{source}: {key}"
