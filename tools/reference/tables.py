"""Tables of Markdown, and how values read in them."""

from collections.abc import Iterable, Mapping

import msgspec

from headway.model.settings import Budget
from headway.model.time import span_text
from headway.model.words import Word
from tools.reference.meanings import meaning_of
from tools.reference.source import Field, fields_of

NOTE = "<!-- Written by `make docs` from the code. Change the code, not this page. -->"


def table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    head = list(columns)
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return lines + [f"| {' | '.join(row)} |" for row in rows]


def code(text: str) -> str:
    """A piece of code in a cell."""
    return f"`{text}`".replace("|", "\\|")


def cell(text: str) -> str:
    """Words in a cell."""
    return " ".join(text.split()).replace("|", "\\|")


def word_table(words: Mapping[type[Word], str]) -> list[str]:
    return table(
        ("list", "what it says", "words"),
        [
            (
                f"`{vocabulary.__name__}`",
                meaning,
                ", ".join(f"`{word.value}`" for word in vocabulary),
            )
            for vocabulary, meaning in words.items()
        ],
    )


def struct_table(owner: type[msgspec.Struct]) -> list[str]:
    return table(
        ("field", "type", "default", "meaning"),
        [
            (
                f"`{field.name}`",
                code(field.type),
                default_of(owner, field),
                meaning_of(f"{owner.__name__}.{field.name}", field.docstring),
            )
            for field in fields_of(owner)
        ],
    )


def default_of(owner: type[msgspec.Struct], field: Field) -> str:
    """The default as a person would write it; empty where the field must be given."""
    (info,) = (info for info in msgspec.structs.fields(owner) if info.name == field.name)
    if info.default_factory is not msgspec.NODEFAULT:
        return "see above" if info.default_factory() else "none"
    if info.default is msgspec.NODEFAULT:
        return ""
    return shown(info.default, field.type)


def shown(value: object, kind: str = "") -> str:
    match value:
        case None | ():
            return "none"
        case bool():
            return f"`{value}`"
        case int() if kind.startswith(("Span", "Length", "Annotated[Span")):
            return f"`{span_text(value)}`"
        case Word():
            return f"`{value.value}`"
        case msgspec.Struct():
            return "see below" if value != Budget() else "none"
        case "":
            return "empty"
        case _:
            return f"`{value}`"
