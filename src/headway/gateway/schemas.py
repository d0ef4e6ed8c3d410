"""The schemas of the structs that a document speaks of, drawn by msgspec from the structs themselves."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

import msgspec

from headway.wire.base import Request

Schema: TypeAlias = dict[str, object]

_REFS = "#/components/schemas/"


class Schemas:
    """Schemas by struct. What a struct cannot say with its fields it says in `schema_extra`."""

    def __init__(self, kinds: Iterable[type]) -> None:
        every = tuple(dict.fromkeys(kinds))
        refs, components = msgspec.json.schema_components(
            every, schema_hook=_anything, ref_template=f"{_REFS}{{name}}"
        )
        self._refs: Mapping[type, Schema] = dict(zip(every, refs, strict=True))
        self._schemas: dict[str, Schema] = dict(components)
        # Also of those that are only reached through others: msgspec says nothing beside a reference.
        extras = {kind.__name__: kind for kind in _below(Request)}
        for name, schema in self._schemas.items():
            schema.update(getattr(extras.get(name), "schema_extra", {}))

    def ref(self, kind: type) -> Schema:
        return self._refs[kind]

    def properties(self, kind: type) -> dict[str, Schema]:
        """The schemas of a struct's fields, by the names of the wire."""
        found = self._schemas[self._name(kind)]["properties"]
        assert isinstance(found, dict)
        return found

    def reached(self, told: object) -> dict[str, Schema]:
        """The schemas that something refers to, in alphabetical order."""
        found: set[str] = set()
        left = [told]
        while left:
            match left.pop():
                case {"$ref": str(ref)} if ref.startswith(_REFS):
                    name = ref.removeprefix(_REFS)
                    if name not in found:
                        found.add(name)
                        left.append(self._schemas[name])
                case dict() as mapping:
                    left.extend(mapping.values())
                case list() as items:
                    left.extend(items)
                case _:
                    pass
        return {name: self._schemas[name] for name in sorted(found)}

    def _name(self, kind: type) -> str:
        return str(self._refs[kind]["$ref"]).removeprefix(_REFS)


def _below(kind: type) -> Iterator[type]:
    subclasses: list[type] = kind.__subclasses__()
    for each in subclasses:
        yield each
        yield from _below(each)


def _anything(kind: type) -> Schema:
    """Whatever JSON can hold."""
    if kind is object:
        return {"description": "Whatever JSON can hold."}
    raise NotImplementedError
