"""The reference pages say what the code says, and the architecture page names only what exists."""

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import headway
from headway.events import CATALOGUE
from headway.model.time import SECOND, Span
from headway.model.value import Value
from tools import reference

ROOT = Path(__file__).resolve().parents[2]
ARCHITECTURE = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
_PROSE = re.sub(r"^```.*?^```$", "", ARCHITECTURE, flags=re.MULTILINE | re.DOTALL)
CODE = re.findall(r"`([^`\n]+)`", _PROSE)


@pytest.mark.parametrize("path", reference.pages(), ids=lambda path: path.name)
def test_the_page_is_what_the_code_says(path: Path) -> None:
    """If this fails: `make docs` writes the page anew."""
    assert path.read_text(encoding="utf-8") == reference.pages()[path]


def test_each_event_of_the_catalogue_has_its_section() -> None:
    sections = re.findall(r"^## (\w+)$", reference.events_page(), re.MULTILINE)
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
        assert reference.fields_of(Sample) == [
            reference.Field("must", "str", None),
            reference.Field("grace", "Span", "How long\n    to wait."),
            reference.Field("ratio", "float | None", None),
        ]

    def test_a_table_shows_defaults_as_a_person_writes_them(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        said = {"Sample.must": "Given.", "Sample.ratio": "A part."}
        monkeypatch.setattr(reference, "MEANINGS", said)
        assert reference.struct_table(Sample) == [
            "| field | type | default | meaning |",
            "|---|---|---|---|",
            "| `must` | `str` |  | Given. |",
            "| `grace` | `Span` | `1m30s` | How long to wait. |",
            "| `ratio` | `float \\| None` | none | A part. |",
        ]

    def test_a_name_without_a_meaning_is_an_error(self) -> None:
        with pytest.raises(reference.NoMeaning, match=r"Sample\.must"):
            reference.struct_table(Sample)


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
