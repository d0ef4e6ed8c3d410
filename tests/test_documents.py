"""What the documents say is true: their programs print what is shown, their links lead somewhere.

- Each ```python block of README.md and of the guides runs by itself. A ```text or ```output block
  directly after it is its output.
- Each examples/*.py runs. `Output::` and an indented block that end its docstring are its output.
- Each relative link of the Markdown pages leads to a file, and its #fragment to a heading.
"""

import ast
import os
import re
import subprocess
import sys
import textwrap
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TIMEOUT_S = 60


@dataclass(frozen=True)
class Program:
    """A program in a document, and what the document says it prints, if it says."""

    line: int
    source: str
    output: str | None


@dataclass(frozen=True)
class Block:
    """A fenced block; lines count from 1 and take in the fences."""

    language: str
    text: str
    first: int
    last: int


@dataclass(frozen=True)
class Link:
    """A link as its page writes it."""

    line: int
    target: str


def blocks(markdown: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found: list[Block] = []
    fence: re.Match[str] | None = None
    first = 0
    inside: list[str] = []
    for number, line in enumerate(markdown.splitlines(), start=1):
        if fence is None:
            if fence := re.match(
                r"(?P<indent> *)(?P<mark>`{3,}|~{3,})\s*(?P<language>[\w-]*)", line
            ):
                first, inside = number, []
        elif re.fullmatch(rf" *{re.escape(fence['mark'][0])}{{{len(fence['mark'])},}}\s*", line):
            text = textwrap.dedent("".join(f"{row}\n" for row in inside))
            found.append(Block(fence["language"], text, first, number))
            fence = None
        else:
            inside.append(line)
    if fence is not None:
        raise ValueError(f"the fence of line {first} is never closed")
    return found


def programs(markdown: str) -> list[Program]:
    """The Python blocks of a page, each with the output block directly after it."""
    lines = markdown.splitlines()
    found: list[Program] = []
    every = blocks(markdown)
    for block, after in zip(every, [*every, None][1:], strict=True):
        if block.language != "python":
            continue
        output = None
        if after is not None and after.language in {"text", "output"}:
            between = lines[block.last : after.first - 1]
            output = after.text if not "".join(between).strip() else None
        found.append(Program(block.first, block.text, output))
    return found


def example_output(source: str) -> str | None:
    """The output that the docstring of an example ends with, if it does."""
    docstring = ast.get_docstring(ast.parse(source)) or ""
    _, marker, shown = f"\n{docstring}".rpartition("\nOutput::\n")
    if not marker or any(line and not line.startswith(" ") for line in shown.splitlines()):
        return None
    return textwrap.dedent(shown).strip("\n") + "\n"


def links(markdown: str) -> list[Link]:
    """The relative links of a page, outside of code."""
    lines = markdown.splitlines()
    for block in blocks(markdown):
        lines[block.first - 1 : block.last] = [""] * (block.last - block.first + 1)
    return [
        Link(number, target)
        for number, line in enumerate(lines, start=1)
        for target in _targets(re.sub(r"`[^`]*`", "", line))
        if not re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:|//", target)
    ]


def _targets(line: str) -> Iterator[str]:
    for pattern in (
        r"\]\(\s*<?([^)\s>]+)",
        r"^\s{0,3}\[[^\]]+\]:\s*<?([^\s>]+)",
        r"<(?:a|img|source)\b[^>]*?\b(?:href|src|srcset)=[\"']([^\"']+)",
    ):
        yield from re.findall(pattern, line)


def why_broken(page: Path, target: str, root: Path) -> str | None:
    """Why a link of a page leads nowhere, or None when it leads somewhere."""
    path, _, fragment = target.partition("#")
    path = urllib.parse.unquote(path.partition("?")[0])
    start = root if path.startswith("/") else page.parent
    aim = (start / path.lstrip("/")).resolve() if path else page.resolve()
    if not aim.is_relative_to(root.resolve()):
        return "leads out of the project"
    if not aim.exists():
        return "no such file"
    if fragment and aim.suffix == ".md":
        headings = anchors(aim.read_text(encoding="utf-8"))
        if fragment.lower() not in headings:
            return f"no such heading in {aim.name}; there are: {', '.join(sorted(headings))}"
    return None


def anchors(markdown: str) -> set[str]:
    """What a fragment may name on a page: its headings as GitHub spells them, and explicit ids."""
    lines = markdown.splitlines()
    for block in blocks(markdown):
        lines[block.first - 1 : block.last] = [""] * (block.last - block.first + 1)
    found: set[str] = set()
    for line in lines:
        found |= {name.lower() for name in re.findall(r"\b(?:id|name)=[\"']([^\"']+)", line)}
        if heading := re.match(r"#{1,6}\s+(.*?)\s*#*$", line):
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).lower()
            slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
            spelled = [slug, *(f"{slug}-{number}" for number in range(1, 100))]
            found.add(next(name for name in spelled if name not in found))
    return found


def run(program: Path, folder: Path) -> str:
    """Run a program in a folder of its own, and return what it printed."""
    try:
        ran = subprocess.run(
            [sys.executable, str(program)],
            cwd=folder,
            env={
                **os.environ,
                "PYTHONPATH": whole_paths(os.environ.get("PYTHONPATH", "")),
                "PYTHONIOENCODING": "utf-8",
                "NO_COLOR": "1",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as late:
        pytest.fail(f"still running after {TIMEOUT_S} s; it printed: {late.stdout!r}")
    assert ran.returncode == 0, f"exit code {ran.returncode}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


def whole_paths(paths: str) -> str:
    """The same search path for a program that runs in another folder."""
    return os.pathsep.join(str(Path(path).resolve()) for path in paths.split(os.pathsep) if path)


def check_output(printed: str, shown: str | None) -> None:
    """Hold what was printed against what the document shows, if it shows anything."""
    if shown is not None:
        assert printed.removesuffix("\n") == shown.removesuffix("\n")


TAUGHT = [ROOT / "README.md", *sorted(ROOT.glob("docs/guides/*.md"))]
PROGRAMS = [
    (page, program) for page in TAUGHT for program in programs(page.read_text(encoding="utf-8"))
]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("bench/*.md")])
LINKS = [(page, link) for page in PAGES for link in links(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(program, id=f"{page.relative_to(ROOT)}-{program.line}")
        for page, program in PROGRAMS
    ],
)
def test_program(program: Program, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(program.source, encoding="utf-8")
    check_output(run(path, tmp_path), program.output)


@pytest.mark.parametrize("page", TAUGHT, ids=lambda page: page.name)
def test_every_page_that_teaches_shows_a_program(page: Path) -> None:
    assert programs(page.read_text(encoding="utf-8"))


@pytest.mark.skipif(not EXAMPLES, reason="there are no examples yet")
@pytest.mark.parametrize(
    "example", [pytest.param(path, id=path.stem) for path in EXAMPLES] or [None]
)
def test_example(example: Path, tmp_path: Path) -> None:
    check_output(run(example, tmp_path), example_output(example.read_text(encoding="utf-8")))


@pytest.mark.skipif(not LINKS, reason="no page has a relative link yet")
@pytest.mark.parametrize(
    ("page", "link"),
    [
        pytest.param(page, link, id=f"{page.relative_to(ROOT)}-{link.line}-{link.target}")
        for page, link in LINKS
    ]
    or [(None, None)],
)
def test_link(page: Path, link: Link) -> None:
    assert why_broken(page, link.target, ROOT) is None


class TestReading:
    """The checks above are only as good as their reading of the pages."""

    PAGE = textwrap.dedent(
        """\
        # Title

        ```python
        print("one")
        ```

        ```text
        one
        ```

        ```python
        print("two")
        ```

        It prints:

        ```text
        not compared
        ```

        ```sh
        make run
        ```
        - in a list:

          ```python
          if True:
              print("three")
          ```
          ```output
          three
          ```
        """
    )

    def test_programs_and_their_outputs_are_found(self) -> None:
        assert programs(self.PAGE) == [
            Program(3, 'print("one")\n', "one\n"),
            Program(11, 'print("two")\n', None),
            Program(26, 'if True:\n    print("three")\n', "three\n"),
        ]

    def test_a_longer_fence_holds_a_shorter_one(self) -> None:
        page = "````markdown\n```python\nnot run\n```\n````\n"
        assert programs(page) == []

    def test_an_open_fence_is_an_error(self) -> None:
        with pytest.raises(ValueError, match="line 1 is never closed"):
            blocks("```python\nprint()\n")

    def test_another_output_fails(self) -> None:
        with pytest.raises(AssertionError):
            check_output("one\n", "two\n")

    def test_a_program_that_fails_fails(self, tmp_path: Path) -> None:
        path = tmp_path / "bad.py"
        path.write_text("raise SystemExit(3)", encoding="utf-8")
        with pytest.raises(AssertionError, match="exit code 3"):
            run(path, tmp_path)

    @pytest.mark.parametrize(
        ("docstring", "output"),
        [
            ("Says hello.", None),
            ("Says hello.\n\nOutput::\n\n    hello\n      world\n", "hello\n  world\n"),
            ("Says.\n\nOutput::\n\n    hello\n\n    again\n", "hello\n\nagain\n"),
            ("Says.\n\nOutput::\n\n    hello\n\nThen more is said.\n", None),
        ],
    )
    def test_the_output_of_an_example(self, docstring: str, output: str | None) -> None:
        assert example_output(f'"""{docstring}"""\n') == output

    def test_relative_links_are_found(self) -> None:
        page = textwrap.dedent(
            """\
            [a](docs/A.md#part) ![b](b.svg "title") <img src="c.svg"> [site](https://example.org)
            `[code](no.md)` [mail](mailto:x@example.org) [here](#title)
            ```text
            [code](no.md)
            ```
            [ref]: d.md
            """
        )
        assert links(page) == [
            Link(1, "docs/A.md#part"),
            Link(1, "b.svg"),
            Link(1, "c.svg"),
            Link(2, "#title"),
            Link(6, "d.md"),
        ]

    @pytest.mark.parametrize(
        ("target", "why"),
        [
            ("other.md", None),
            ("other.md#what-if-it-dies", None),
            ("other.md#what-if-it-dies-1", None),
            ("other.md#what-if-it-dies-2", "no such heading"),
            ("other.md#here", None),
            ("#top", None),
            ("/docs/other.md", None),
            ("../docs", None),
            ("missing.md", "no such file"),
            ("../../elsewhere.md", "leads out"),
            ("other.md#in-code", "no such heading"),
        ],
    )
    def test_a_broken_link_is_seen(self, tmp_path: Path, target: str, why: str | None) -> None:
        docs = tmp_path / "docs"
        docs.mkdir()
        (docs / "page.md").write_text("# Top\n", encoding="utf-8")
        (docs / "other.md").write_text(
            "## What if `it` dies?\n\n### What if it dies\n"
            '<a id="here"></a>\n```sh\n# in code\n```\n',
            encoding="utf-8",
        )
        found = why_broken(docs / "page.md", target, tmp_path)
        assert found is None if why is None else found is not None and found.startswith(why)
