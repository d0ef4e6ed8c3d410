"""The layer of what a command line says. It wins over all others."""

from collections.abc import Mapping

from headway.config.keys import KEYS
from headway.config.layers import Layer


def read_flags(flags: Mapping[str, object]) -> Layer:
    """What flags say, by the dotted names of their keys: `{"server.port": 8080}`. None: not given."""
    layer = Layer()
    for dotted, given in flags.items():
        if given is None:
            continue
        key = KEYS[dotted]
        value = key.kind.from_text(given) if isinstance(given, str) else given
        layer.take(tuple(dotted.split(".")), key, value, key.flag, key.flag)
    return layer
