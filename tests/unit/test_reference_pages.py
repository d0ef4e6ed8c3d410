"""The reference pages say what the code says, and the architecture page names only what exists."""

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import headway
from headway.config.files import read_file
from headway.events import CATALOGUE
from headway.model.time import SECOND, Span
from headway.model.value import Value
from tools import reference
from tools.reference import config, meanings, schemas, source, tables
from tools.reference.events import events_page

ROOT = Path(__file__).resolve().parents[2]
ARCHITECTURE = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
_PROSE = re.sub(r"^```.*?^```$", "", ARCHITECTURE, flags=re.MULTILINE | re.DOTALL)
CODE = re.findall(r"`([^`\n]+)`", _PROSE)


@pytest.mark.parametrize("path", reference.PAGES, ids=lambda path: path.name)
def test_the_page_is_what_the_code_says(path: Path) -> None:
    """If this fails: `make docs` writes the page anew."""
    assert path.read_text(encoding="utf-8") == reference.PAGES[path]()


def test_each_event_of_the_catalogue_has_its_section() -> None:
    sections = re.findall(r"^## (\w+)$", events_page(), re.MULTILINE)
    assert sections == [*(event.__name__ for event in CATALOGUE), "Words"]


def test_no_meaning_is_left_over() -> None:
    assert reference.unused_meanings() == []


class Sample(Value, frozen=True):
    """A value as settings are."""

    must: str
    grace: Span = 90 * SECOND
    """How long
    to wait."""
    ratio: float | None = None


class TestReading:
    """The pages are only as good as the reading of the code."""

    def test_fields_are_read_with_their_types_and_docstrings(self) -> None:
        assert source.fields_of(Sample) == [
            source.Field("must", "str", None),
            source.Field("grace", "Span", "How long\n    to wait."),
            source.Field("ratio", "float | None", None),
        ]

    def test_a_table_shows_defaults_as_a_person_writes_them(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        said = {"Sample.must": "Given.", "Sample.ratio": "A part."}
        monkeypatch.setattr(meanings, "MEANINGS", said)
        assert tables.struct_table(Sample) == [
            "| field | type | default | meaning |",
            "|---|---|---|---|",
            "| `must` | `str` |  | Given. |",
            "| `grace` | `Span` | `1m30s` | How long to wait. |",
            "| `ratio` | `float \\| None` | none | A part. |",
        ]

    def test_a_name_without_a_meaning_is_an_error(self) -> None:
        with pytest.raises(meanings.NoMeaning, match=r"Sample\.must"):
            tables.struct_table(Sample)


def test_o2_the_example_of_a_config_file_is_one() -> None:
    assert read_file(config.EXAMPLE, "headway.toml").problems == []


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"$ref": "#/x/TaskAnswer"}, "[TaskAnswer](#json-taskanswer)"),
        ({"enum": ["a", "b"]}, "`a`, `b`"),
        ({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]}, "integer, at least 1 or null"),
        ({"type": "string", "anyOf": [{"format": "x"}], "maxLength": 64}, "string, at most 64 characters"),
        ({"type": "array", "items": {"type": "string"}}, "list of string"),
        ({"type": "object", "additionalProperties": {"type": "boolean"}}, "object of boolean"),
        ({"type": "integer", "minimum": 1, "maximum": 5}, "integer, 1 to 5"),
        ({}, "anything"),
    ],
)  # fmt: skip
def test_a_schema_is_told_in_words(schema: schemas.Schema, text: str) -> None:
    assert schemas.linked(schema) == text


def classes() -> dict[str, type]:
    """Every class of Headway by its name."""
    found: dict[str, type] = {}
    for module in pkgutil.walk_packages(headway.__path__, "headway."):
        if module.name != "headway.__main__":
            space = vars(importlib.import_module(module.name))
            found |= {
                name: value
                for name, value in space.items()
                if isinstance(value, type) and value.__module__.startswith("headway.")
            }
    return found


def test_each_method_that_the_architecture_page_names_exists() -> None:
    known = classes()
    named = [
        span.removesuffix("()") for span in CODE if re.fullmatch(r"[A-Z]\w+\.\w+(\(\))?", span)
    ]
    missing = [
        name for name in named if not hasattr(known.get(name.partition(".")[0]), name.split(".")[1])
    ]
    assert (len(named) > 20, missing) == (True, [])


def test_each_file_that_the_architecture_page_names_exists() -> None:
    named = [span for span in CODE if re.fullmatch(r"[\w/]+\.py|[a-z]+/", span)]
    missing = [
        name
        for name in named
        if not (ROOT / name).exists() and not (ROOT / "src" / "headway" / name).exists()
    ]
    assert (len(named) > 10, missing) == (True, [])
