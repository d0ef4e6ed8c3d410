"""One way of setting things, read: what it says, and where it says it."""

import re
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from headway.config.keys import Key
from headway.model.errors import InvalidInput

KeyPath: TypeAlias = tuple[str, ...]
"""`("server", "port")`, or `("lanes", "main", "width")`: names may hold dots."""

_BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


class Said(NamedTuple):
    """A checked value, and where it comes from."""

    value: object
    source: str
    place: str
    """How a problem names it: `headway.toml line 12: server.port`, `HEADWAY_PORT`, `--port`."""


class Layer:
    """What a file, the environment or the flags say, and what is wrong with it."""

    def __init__(self) -> None:
        self.said: dict[KeyPath, Said] = {}
        self.problems: list[InvalidInput] = []

    def take(self, path: KeyPath, key: Key, value: object, source: str, place: str) -> None:
        """Check a value and keep it, or what is wrong with it."""
        try:
            self.said[path] = Said(key.kind.read(value, place), source, place)
        except InvalidInput as wrong:
            self.problems.append(wrong)
        except ValueError:
            # A number that is too long to be shown.
            self.problems.append(InvalidInput(place, "a very long number", key.kind.allowed))


def dotted(path: KeyPath) -> str:
    """A path as it is written in a file."""
    return ".".join(part if _BARE.fullmatch(part) else _quoted(part) for part in path)


def together(*layers: Layer) -> Mapping[KeyPath, Said]:
    """What holds: a later layer wins over an earlier one, key by key."""
    return {path: said for layer in layers for path, said in layer.said.items()}


def _quoted(part: str) -> str:
    escaped = part.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
