"""The page of rules is complete and true: its drawing, its table, its numbers and their proofs."""

import re
from pathlib import Path

import pytest

from headway.core.lifecycle import FIRST_STATES, TRANSITIONS, diagram
from headway.model.words import FINAL_STATES, State

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "reference" / "rules.md").read_text(encoding="utf-8")
SECTIONS = {
    "R": 5,
    "L": 8,
    "S": 11,
    "F": 6,
    "D": 10,
    "C": 13,
    "H": 4,
    "T": 5,
    "W": 3,
    "X": 8,
    "O": 5,
}
RULES = [
    f"{section}-{number}" for section, count in SECTIONS.items() for number in range(1, count + 1)
]
HERE = set(RULES)
NODES = (ROOT / "docs" / "reference" / "nodes.md").read_text(encoding="utf-8")
NODE_RULES = [f"N-{number}" for number in range(1, 22)]


def numbers(text: str) -> list[str]:
    """The rules that a list such as `X-1 to X-3, X-5` names."""
    found = []
    for section, first, last in re.findall(r"([A-Z])-(\d+)(?: to [A-Z]-(\d+))?", text):
        found += [f"{section}-{n}" for n in range(int(first), int(last or first) + 1)]
    return found


def listed(page: str, column: int) -> list[str]:
    """The rules in one column of the table at the top."""
    rows = re.findall(r"^\| \[[A-Z]\. .*$", page, re.MULTILINE)
    return [rule for row in rows for rule in numbers(row.split("|")[column])]


def test_r1_the_drawing_on_the_page_is_drawn_from_the_table() -> None:
    (drawn,) = re.findall(r"```mermaid\n(.*?)\n```", PAGE, re.DOTALL)
    assert drawn == diagram()


def test_r1_the_table_on_the_page_is_the_table_of_the_core() -> None:
    rows = re.findall(r"^\| (\(submission\)|`\w+`) \| (.*) \|$", PAGE, re.MULTILINE)
    said = {
        start.strip("`"): set(re.findall(r"`(\w+)`", re.sub(r"\([^)]*\)", "", steps)))
        for start, steps in rows
        if start.strip("`") in {"(submission)", *State}
    }
    assert said.pop("(submission)") == FIRST_STATES
    assert said == {state: targets for state, targets in TRANSITIONS.items() if targets}
    (finals,) = re.findall(r"^(.*) are final\.$", PAGE, re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", finals)) == FINAL_STATES


def test_every_rule_is_on_the_page_once_and_in_order() -> None:
    assert re.findall(r"^- \*\*([A-Z]-\d+)\*\* ", PAGE, re.MULTILINE) == RULES


def test_every_rule_is_said_in_a_few_words() -> None:
    for rule, text in re.findall(r"^- \*\*([A-Z]-\d+)\*\* (.*(?:\n  .*)*)", PAGE, re.MULTILINE):
        assert 30 < len(text) < 700, rule
        assert text.rstrip().endswith("."), rule


def test_the_table_at_the_top_says_what_is_here_and_what_is_planned() -> None:
    here, planned = listed(PAGE, 2), listed(PAGE, 3)
    assert set(here) == HERE
    assert sorted(here + planned) == sorted(RULES)


@pytest.mark.parametrize("section", SECTIONS)
def test_each_section_says_the_same_as_the_table_at_the_top(section: str) -> None:
    (body,) = re.findall(rf"^## {section}\. .*?(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
    line = next(
        row for row in body.splitlines() if row.startswith(("In this version:", "Planned:"))
    )
    here = re.search(r"In this version: ([^.]*)\.", line)
    planned = re.search(r"Planned: ([^.]*)\.", line)
    mine = [rule for rule in RULES if rule[0] == section]
    assert numbers(here[1] if here else "") == [rule for rule in mine if rule in HERE]
    assert numbers(planned[1] if planned else "") == [rule for rule in mine if rule not in HERE]


def named_in(text: str) -> set[str]:
    """The rules that a test names: `L-2` in its text, or `l2` as a word of its name."""
    written = re.findall(r"\b([RLSFDCHTWXON])-(\d+)\b", text)
    spelled = re.findall(r"(?<![a-z0-9])([rlsfdchtwxon])(\d+)(?![a-z0-9])", text)
    return {f"{section.upper()}-{number}" for section, number in written + spelled}


def proofs() -> dict[str, str]:
    """For each test of the project, its name and docstring: where it may name its rules."""
    found = {}
    tests = ROOT / "tests"
    for path in sorted([*tests.rglob("test_*.py"), *tests.rglob("*_contract.py")]):
        if path == Path(__file__):
            continue
        source = path.read_text(encoding="utf-8")
        for match in re.finditer(
            r'def (test_\w+)\([^)]*\)[^:]*:\n(?:\s+"""(.*?)""")?', source, re.DOTALL
        ):
            found[f"{path.name}::{match[1]}"] = f"{match[1]} {match[2] or ''}"
    return found


PROOFS = proofs()


def test_every_rule_for_many_nodes_is_on_its_page_once_and_in_order() -> None:
    assert re.findall(r"^- \*\*(N-\d+)\*\* ", NODES, re.MULTILINE) == NODE_RULES


@pytest.mark.parametrize("rule", [*sorted(HERE), *NODE_RULES])
def test_each_rule_of_this_version_is_named_by_a_test_that_proves_it(rule: str) -> None:
    assert [name for name, text in PROOFS.items() if rule in named_in(text)]


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("def test_l2_resize()", {"L-2"}),
        ("def test_f2_f3_x8_pick()", {"F-2", "F-3", "X-8"}),
        ('"""S-9: stop."""', {"S-9"}),
        ("test_s11_hook", {"S-11"}),
        ("test_call2_s", set()),
        ("html2 x86 utf8", set()),
    ],
)
def test_numbers_are_found_in_names_and_in_texts(text: str, rules: set[str]) -> None:
    assert named_in(text) & set(RULES) == rules


def test_no_number_is_used_that_the_page_does_not_have() -> None:
    """A rule that code or a test cites can be looked up."""
    unknown = {
        f"{path.relative_to(ROOT)} {rule}"
        for folder in ("src", "tests")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for rule in re.findall(r"\(([RLSFDCHTWXON]-\d+)\)", path.read_text(encoding="utf-8"))
        if rule not in {*RULES, *NODE_RULES}
    }
    assert unknown == set()
