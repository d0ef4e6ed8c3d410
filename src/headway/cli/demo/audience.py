"""The ways to show the story: a moving picture, lines of text, or the one busiest frame."""

import io
from pathlib import Path
from typing import Protocol

from rich.console import Console
from rich.live import Live
from rich.text import Text

from headway.cli.demo.picture import Picture
from headway.cli.demo.scene import Scene

_FRAME_SIZE = (88, 24)

SVG_FORMAT = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<title>A moment of headway demo: lanes, chats, and what happened</title>
<style>
.{unique_id}-matrix {{
  font-family: "Fira Code", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px;
  line-height: {line_height}px;
}}
.{unique_id}-title {{ font: bold 18px sans-serif }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""As Rich writes it, but with fonts that are at hand instead of fetched ones."""


class Audience(Protocol):
    """Who the story is shown to."""

    @property
    def frames_per_second(self) -> float:
        """How often it wants to see a frame; 0 for never."""

    def headline(self, title: str, line: str) -> None:
        """A new scene begins."""

    def note(self, elapsed_s: float, text: str) -> None:
        """Something notable happened."""

    def frame(self, scene: Scene) -> None:
        """This is how it looks now."""


class Reader:
    """Reads lines of text, one for each notable event."""

    frames_per_second = 0.0

    def __init__(self, console: Console) -> None:
        self._console = console

    def headline(self, title: str, line: str) -> None:
        self._print(Text.assemble("\n", (title, "bold"), f". {line}"))

    def note(self, elapsed_s: float, text: str) -> None:
        self._print(Text.assemble((f"{elapsed_s:6.1f}s  ", "dim"), text))

    def frame(self, scene: Scene) -> None:
        """Not for readers."""

    def _print(self, text: Text) -> None:
        self._console.print(text, soft_wrap=True, highlight=False)


class Watcher:
    """Watches the moving picture on a terminal; headlines and notes are part of every frame."""

    frames_per_second = 12.0

    def __init__(self, live: Live) -> None:
        self._live = live

    def headline(self, title: str, line: str) -> None:
        """In the next frame."""

    def note(self, elapsed_s: float, text: str) -> None:
        """In the next frame."""

    def frame(self, scene: Scene) -> None:
        self._live.update(Picture(scene), refresh=True)


class Photographer:
    """Keeps one frame: the first of those with most to see."""

    frames_per_second = 20.0

    def __init__(self) -> None:
        self._best: Scene | None = None

    def headline(self, title: str, line: str) -> None:
        """In the next frame."""

    def note(self, elapsed_s: float, text: str) -> None:
        """In the next frame."""

    def frame(self, scene: Scene) -> None:
        if self._best is None or scene.busyness > self._best.busyness:
            self._best = scene

    def svg(self) -> str:
        """The frame as SVG that needs nothing from elsewhere."""
        assert self._best is not None
        columns, lines = _FRAME_SIZE
        console = Console(
            record=True,
            file=io.StringIO(),
            width=columns,
            height=lines,
            force_terminal=True,
            color_system="truecolor",
        )
        console.print(Picture(self._best))
        console.print()
        return console.export_svg(
            title="headway demo", code_format=SVG_FORMAT, unique_id="headway-demo"
        )

    def save(self, path: Path) -> None:
        path.write_text(self.svg(), encoding="utf-8")
