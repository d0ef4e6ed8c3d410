"""A check that is switched off on a line says why on that line."""

import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NEEDS_A_REASON = frozenset({"BLE001", "TID251"})

_NOQA = re.compile(r"#\s*noqa:\s*(?P<codes>[A-Z]+\d+(?:[,\s]+[A-Z]+\d+)*)(?P<reason>.*)")


def unexplained(source: str) -> list[str]:
    """The suppressions in this source that need a reason and give none, each with its line."""
    found = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or not (match := _NOQA.search(token.string)):
            continue
        codes = set(re.findall(r"[A-Z]+\d+", match["codes"]))
        if codes & NEEDS_A_REASON and not re.match(r"\s+- \w+ \w+", match["reason"]):
            found.append(f"line {token.start[0]}: {token.string}")
    return found


def test_every_suppression_gives_its_reason() -> None:
    found = [
        f"{path.relative_to(ROOT)} {suppression}"
        for folder in ("src", "tests", "bench", "examples")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for suppression in unexplained(path.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    "comment",
    [
        "# noqa: BLE001",
        "# noqa: BLE001 -",
        "# noqa: BLE001 because",
        "# noqa: F401, BLE001",
        "# noqa: TID251",
    ],
)
def test_a_missing_reason_is_seen(comment: str) -> None:
    assert unexplained(f"x = 1  {comment}\n") == [f"line 1: {comment}"]


@pytest.mark.parametrize(
    "comment",
    ["# noqa: BLE001 - an agent may raise anything", "# noqa: F401", "# no noqa at all"],
)
def test_a_reason_is_enough(comment: str) -> None:
    assert unexplained(f"x = 1  {comment}\n") == []
