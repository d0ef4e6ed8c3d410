"""The config of a running server: read again, applied where it can be, and left alone where it is wrong."""

import asyncio
import os
from pathlib import Path

import pytest

from headway import Headway, HeadwayError
from headway.cli.serve.reloading import LiveConfig
from headway.config import Config, load


class Files:
    """A config file, and the way to read it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "headway.toml"
        self.write("")

    def write(self, text: str) -> None:
        self.path.write_text(text)

    def read(self) -> Config:
        return load(str(self.path), {}, {})


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_the_file_counts_from_the_start(files: Files) -> None:
    files.write("[lanes]\nmain = 5\n")
    hw = Headway("memory://")
    live = LiveConfig(hw, files.read(), files.read)
    assert hw.settings.lanes["main"].width == 5  # type: ignore[index]
    assert {shown.key for shown in live.shown()} > {"lanes.main.width", "server.port"}


def test_f1_one_change_is_applied_and_nothing_else(files: Files) -> None:
    async def story() -> None:
        async with Headway("memory://") as hw:
            live = LiveConfig(hw, files.read(), files.read)
            hw.set_lane("cron", 2)
            files.write("[limits]\nmax_inflight = 3\n")
            done = await live.reload()
            assert (done.changed, done.needs_restart) == (("limits.max_inflight",), ())
            assert hw.stats().limits.max_inflight == 3
            assert hw.lanes()["cron"].width == 2, "changed by hand, and its setting is the same"
            files.write("")
            assert (await live.reload()).changed == ("limits.max_inflight",)
            assert hw.stats().limits.max_inflight == 20, "what is said no more is at its default"

    asyncio.run(story())


def test_what_only_a_new_start_can_change_is_named(files: Files) -> None:
    async def story() -> None:
        async with Headway("memory://") as hw:
            live = LiveConfig(hw, files.read(), files.read)
            files.write('store = "sqlite:///x.db"\n[server]\nport = 9\n[log]\nkeep = 2\n')
            done = await live.reload()
            assert done.needs_restart == ("store", "server.port", "log.keep")
            assert (await live.reload()).needs_restart == done.needs_restart, "it still does"
            values = {one.key: one.value for one in live.shown()}
            assert (live.server.port, values["server.port"], values["store"]) == (8787, 8787, None)
            files.write("")
            assert (await live.reload()).needs_restart == (), "the file says again what counts"

    asyncio.run(story())


def test_o2_a_file_that_is_wrong_changes_nothing(files: Files) -> None:
    async def story() -> None:
        async with Headway("memory://") as hw:
            live = LiveConfig(hw, files.read(), files.read)
            before = (hw.settings, hw.stats().limits, live.server)
            files.write('[limits]\nmax_inflight = 3\nmax_queue = "many"\n')
            with pytest.raises(HeadwayError, match="max_queue"):
                await live.reload()
            assert (hw.settings, hw.stats().limits, live.server) == before

    asyncio.run(story())


def test_the_environment_still_wins_over_the_file(files: Files) -> None:
    environment = {**os.environ, "HEADWAY_LANE_MAIN": "4"}
    files.write("[lanes]\nmain = 5\n")
    hw = Headway("memory://")
    LiveConfig(hw, load(str(files.path), environment, {}), files.read)
    assert hw.settings.lanes["main"].width == 4  # type: ignore[index]
