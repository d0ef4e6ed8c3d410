"""From a file, the environment and the flags of a command to its config. The only place that reads the file."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from headway.config.building import server_of, settings_of
from headway.config.environment import odd_variables, read_environment
from headway.config.files import read_file
from headway.config.flags import read_flags
from headway.config.layers import Layer, dotted, together
from headway.config.places import find_file
from headway.config.problems import refuse_if
from headway.model.errors import InvalidInput
from headway.model.server import ServerSettings
from headway.model.settings import Settings
from headway.model.value import Value

_LARGEST = 1024 * 1024


class Config(Value, frozen=True):
    """All that was set for a server, and where."""

    settings: Settings
    server: ServerSettings
    store: str
    """Empty: nobody said; a server then has its own in the user's data folder."""
    sources: Mapping[str, str]
    """Which key comes from where: `headway.toml line 12`, `HEADWAY_PORT`, `--port`. Others have their default."""
    file: str = ""
    """The file that was read; empty if there is none."""
    warnings: tuple[str, ...] = ()


def load(
    path: str | None, environment: Mapping[str, str], flags: Mapping[str, object] | None = None
) -> Config:
    """The config: what the file says, the environment over it, and the flags over both (O-2).

    `path` is the file that was named, if one was. Flags go by the names of their keys: `{"server.port": 8080}`;
    None means not given. All that is wrong is refused at once, by its place.
    """
    file = find_file(path, environment)
    layers = [read_environment(environment), read_flags(flags or {})]
    if file is not None:
        layers.insert(0, _read(file))
    said = together(*layers)
    settings, problems = settings_of(said)
    refuse_if([*(problem for layer in layers for problem in layer.problems), *problems])
    store = said.get(("store",))
    return Config(
        settings=settings,
        server=server_of(said),
        store="" if store is None else str(store.value),
        sources=MappingProxyType({dotted(path): one.source for path, one in said.items()}),
        file="" if file is None else str(file),
        warnings=tuple(odd_variables(environment)),
    )


def _read(path: Path) -> Layer:
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST + 1)
    except OSError as away:
        raise InvalidInput(str(path), away.strerror, "a file that can be read") from None
    if len(content) > _LARGEST:
        raise InvalidInput(str(path), "its size", f"at most {_LARGEST} bytes")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput(str(path), "its content", "text in UTF-8") from None
    return read_file(text, str(path))
