"""The layer of a file: `headway.toml`, read to the last key, so that all that is wrong in it is said at once."""

import re
import tomllib
from collections.abc import Iterable, Mapping

from headway.config.keys import A_NAME, KEYS, NAMED, SECTIONS, STORE, Key, is_name
from headway.config.layers import KeyPath, Layer, dotted
from headway.config.lines import lines_of
from headway.config.problems import NotToml, UnknownSetting
from headway.model.errors import InvalidInput
from headway.model.settings import LANE_ALIASES

_TOP = (STORE.name, *SECTIONS, *NAMED)
_AT = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


def read_file(text: str, name: str) -> Layer:
    """What a file says. `name` is what people call it."""
    layer = Layer()
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as wrong:
        layer.problems.append(_not_toml(str(wrong), text, name))
    except (ValueError, RecursionError) as wrong:
        # Numbers of thousands of digits, lists in thousands of lists.
        layer.problems.append(NotToml(name, str(wrong)))
    else:
        _Reader(layer, name, lines_of(text)).read(data)
    return layer


class _Reader:
    """Walks the tables of a file into a layer."""

    def __init__(self, layer: Layer, file: str, lines: Mapping[KeyPath, int]) -> None:
        self._layer = layer
        self._file = file
        self._lines = lines

    def read(self, data: Mapping[str, object]) -> None:
        for name, content in data.items():
            if name == STORE.name:
                self._take((name,), (name,), STORE, content)
            elif name in NAMED:
                self._things(name, content)
            elif name not in SECTIONS:
                self._unknown((name,), _TOP)
            elif isinstance(content, dict):
                known = {key.name: key for key in KEYS.values() if key.section == name}
                self._table((name,), (name,), known, content)
            else:
                self._no_table((name,), content)

    def _things(self, section: str, content: object) -> None:
        """A section that holds things by name. A lane may be said by its width alone."""
        if not isinstance(content, dict):
            self._no_table((section,), content)
            return
        known = NAMED[section]
        for name, about in content.items():
            written = (section, name)
            if not is_name(name):
                self._wrong(written, name, A_NAME)
                continue
            path = (section, self._lane(name, content)) if section == "lanes" else written
            if isinstance(about, dict):
                self._table(path, written, known, about)
            elif section == "lanes":
                self._take((*path, "width"), written, known["width"], about)
            else:
                self._no_table(written, about)

    def _lane(self, name: str, content: Mapping[str, object]) -> str:
        """A lane may go by its other name, but not by both."""
        lane = LANE_ALIASES.get(name)
        if lane is None:
            return name
        if lane in content:
            allowed = f"left out: it is another name of {lane!r}, which is set too"
            self._wrong(("lanes", name), name, allowed)
        return lane

    def _table(
        self, path: KeyPath, written: KeyPath, known: Mapping[str, Key], about: Mapping[str, object]
    ) -> None:
        for name, value in about.items():
            if name in known:
                self._take((*path, name), (*written, name), known[name], value)
            else:
                self._unknown((*written, name), [dotted((*written, key)) for key in known])

    def _take(self, path: KeyPath, written: KeyPath, key: Key, value: object) -> None:
        self._layer.take(path, key, value, self._where(written), self._place(written))

    def _unknown(self, written: KeyPath, known: Iterable[str]) -> None:
        problem = UnknownSetting(self._where(written), dotted(written), known, elsewhere=KEYS)
        self._layer.problems.append(problem)

    def _no_table(self, written: KeyPath, content: object) -> None:
        self._wrong(written, content, f"a table: [{dotted(written)}], and what it sets below it")

    def _wrong(self, written: KeyPath, value: object, allowed: str) -> None:
        self._layer.problems.append(InvalidInput(self._place(written), value, allowed))

    def _place(self, written: KeyPath) -> str:
        return f"{self._where(written)}: {dotted(written)}"

    def _where(self, written: KeyPath) -> str:
        line = self._lines.get(written)
        return self._file if line is None else f"{self._file} line {line}"


def _not_toml(message: str, text: str, name: str) -> NotToml:
    at = _AT.search(message)
    line = at.group(1) if at and at.group(1) else len(text.rstrip().split("\n"))
    return NotToml(f"{name} line {line}", _AT.sub("", message).lower())
