"""The programs of the testing guide work as they are shown."""

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "testing.md"
PROGRAMS = re.findall(
    r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
)


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_program_of_the_guide(number: int) -> None:
    names: dict[str, object] = {"__name__": f"guide_{number}"}
    exec(compile(PROGRAMS[number], f"{GUIDE.name}#{number}", "exec"), names)
    tests = [value for name, value in names.items() if name.startswith("test_")]
    assert len(tests) == 1
    assert callable(tests[0])
    tests[0]()


def test_the_guide_has_programs() -> None:
    assert len(PROGRAMS) == 3
