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
    console = Console(record=True, file=file, width=columns, height=lines)
    console.print(Picture(scene))
    return console.export_text().splitlines()


@pytest.mark.parametrize(("columns", "lines"), [(64, 16), (80, 24), (120, 40), (200, 60)])
def test_every_frame_fits_its_terminal(scenes: list[Scene], columns: int, lines: int) -> None:
    for scene in scenes:
        picture = drawn(scene, columns, lines)
        assert len(picture) <= lines
        assert max(len(line) for line in picture) <= columns


def test_the_usual_terminal_shows_every_chat(scenes: list[Scene]) -> None:
    picture = drawn(scenes[-1], 80, 24)
    shown = {line.split()[1] for line in picture if len(line.split()) > 1}
    assert shown >= {row.name for row in scenes[-1].rows}


def test_the_story_shows_chats_in_every_state(scenes: list[Scene]) -> None:
    assert {row.doing for scene in scenes for row in scene.rows} == set(Doing)


def test_x1_a_waiting_chat_says_why(scenes: list[Scene]) -> None:
    reasons = {row.text for scene in scenes for row in scene.rows if row.doing is Doing.QUEUED}
    assert "main is full, 2 before it" in reasons


def test_lanes_fill_and_empty(scenes: list[Scene]) -> None:
    main = [(lane.running, lane.width) for scene in scenes for lane in scene.lanes[:1]]
    assert {(0, 6), (6, 6), (10, 10), (8, 6)} <= set(main)


def test_l2_a_lane_that_shrank_draws_what_still_runs() -> None:
    lane = LaneRow("main", 2, 3, ("coder", None, "reader", "reader"), ("support",))
    scene = Scene("", "", 1, 20, (lane,), {"coder": 1, "reader": 2}, ())
    drawn_lane = next(line for line in drawn(scene, 80, 24, "ascii") if "main" in line)
    assert drawn_lane.split() == ["main", "###", "###", "###", "3/2", "1", "waiting", "."]


def test_a_terminal_without_unicode_gets_ascii(scenes: list[Scene]) -> None:
    assert all("\n".join(drawn(scene, 80, 24, "ascii")).isascii() for scene in scenes)


@pytest.mark.parametrize(
    ("terminal", "columns", "lines", "moving"),
    [(True, 80, 24, True), (False, 80, 24, False), (True, 50, 24, False), (True, 80, 10, False)],
)
def test_only_a_terminal_with_room_gets_the_moving_picture(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, columns: int, lines: int, moving: bool
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    assert fits(Console(force_terminal=terminal, width=columns, height=lines)) is moving


def test_a_broken_promise_is_shown_and_exits_1() -> None:
    performance = Performance(Album(), seconds=20, seed=7)
    performance.record.hear(
        RunSubmitted(
            1,
            RunId("r1"),
            AgentName("coder"),
            SessionKey("chat:gia"),
            LaneName("main"),
            Source.MESSAGE,
        )
    )
    console = Console(record=True, file=io.StringIO(), width=80)
    with pytest.raises(typer.Exit) as exit_:
        _conclude(console, performance)
    assert exit_.value.exit_code == 1
    printed = console.export_text()
    assert "BROKEN Every run ended exactly once (1 runs, 0 outcomes)" in printed
    assert "run r1 has no outcome" in printed


def test_without_a_broken_promise_it_ends_well() -> None:
    console = Console(record=True, file=io.StringIO(), width=80)
    _conclude(console, Performance(Album(), seconds=20, seed=7))
    assert "BROKEN" not in console.export_text()
