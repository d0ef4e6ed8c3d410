"""The demo's own parts: the picture fits its terminal, the summary tells the truth."""

import io

import pytest
import typer
from rich.console import Console

from headway.cli.demo.command import _conclude
from headway.cli.demo.performance import Performance
from headway.cli.demo.picture import Picture, fits
from headway.cli.demo.scene import Doing, LaneRow, Scene
from headway.model.events import RunSubmitted
from headway.model.run import AgentName, LaneName, RunId, SessionKey
from headway.model.words import Source
from headway.testing import run_virtual


class Album:
    """An audience that keeps every frame."""

    frames_per_second = 5.0

    def __init__(self) -> None:
        self.scenes: list[Scene] = []

    def headline(self, title: str, line: str) -> None: ...

    def note(self, elapsed_s: float, text: str) -> None: ...

    def frame(self, scene: Scene) -> None:
        self.scenes.append(scene)


@pytest.fixture(scope="module")
def scenes() -> list[Scene]:
    album = Album()
    run_virtual(Performance(album, seconds=20, seed=7).play())
    return album.scenes


def drawn(scene: Scene, columns: int, lines: int, encoding: str = "utf-8") -> list[str]:
    """The lines of a picture on a terminal of that size."""
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    console = Console(file=file, width=columns, height=lines, force_terminal=True, no_color=True)
    with console.capture() as capture:
        console.print(Picture(scene), height=lines)
    plain = Console(file=io.StringIO(), width=columns)
    return [plain.render_str(line).plain for line in _unstyled(capture.get()).splitlines()]


def _unstyled(text: str) -> str:
    from rich.text import Text

    return Text.from_ansi(text).plain


@pytest.mark.parametrize(("columns", "lines"), [(64, 16), (80, 24), (120, 40), (200, 60)])
def test_every_frame_fits_its_terminal(scenes: list[Scene], columns: int, lines: int) -> None:
    for scene in scenes:
        picture = drawn(scene, columns, lines)
        assert len(picture) <= lines
        assert max(len(line) for line in picture) <= columns


def test_every_chat_is_in_the_smallest_usual_terminal(scenes: list[Scene]) -> None:
    picture = "\n".join(drawn(scenes[-1], 80, 24))
    assert all(f" {row.name} " in picture for row in scenes[-1].rows)
