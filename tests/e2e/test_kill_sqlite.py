"""D-1 and D-7 on SQLite: a program is killed at random instants, and nothing it acknowledged is lost."""

import os
import random
import time
from pathlib import Path

import pytest

from tests.e2e.checker import Evidence, check
from tests.e2e.ledger import read_lines
from tests.e2e.notes import ASKED, TOLD, AskedRow, ToldRow, rows
from tests.e2e.processes import Process
from tests.e2e.stored import read_sqlite

ROUNDS = int(os.environ.get("HEADWAY_KILL_ROUNDS", "20"))
SEED = int(os.environ.get("HEADWAY_CHAOS_SEED", "1"))


WIDE, NARROW = 30, 2
"""Slots for all, or for so few that starts are stored ahead of them."""


def program(name: str, folder: Path, what: str, width: int) -> Process:
    command = ["tests.e2e.sqlite_program", str(folder / "headway.db"), str(folder), what]
    return Process(name, command, folder, {"HEADWAY_LANE_MAIN": str(width)})


@pytest.mark.parametrize("width", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.timeout(300 + 30 * ROUNDS)
def test_everything_acknowledged_is_there_and_finishes_after_every_kill(
    width: int, tmp_path: Path
) -> None:
    chance = random.Random(SEED)
    deaths: dict[str, int] = {}
    ahead = 0
    for number in range(ROUNDS):
        killed = program(f"round-{number}", tmp_path, "work", width)
        if chance.random() < 0.25:
            killed.wait_for("opening")
            time.sleep(chance.uniform(0, 0.05))
        else:
            killed.wait_for("ready")
            time.sleep(chance.uniform(0, 0.4))
        assert killed.alive, killed.printed
        deaths[killed.name] = killed.kill()
        ahead += "started ahead" in killed.printed

    last = program("last", tmp_path, "finish", width)
    assert last.popen.wait(240) == 0, last.printed
    asked = rows(tmp_path / ASKED, AskedRow)
    evidence = Evidence(
        asked={row.run: row.asked for row in asked},
        told={row.run: row.told for row in rows(tmp_path / TOLD, ToldRow)},
        stored=read_sqlite(tmp_path / "headway.db"),
        lines=read_lines(tmp_path),
        deaths=deaths,
    )
    verdict = check(evidence)
    assert verdict.violations == [], "\n".join(map(str, verdict.violations[:20]))
    assert len(evidence.asked) > 5 * ROUNDS, "too little was submitted to prove anything"
    assert verdict.repeated > 0, "no attempt was ever cut by a kill: nothing was proved"
    assert ahead or width is WIDE, "nothing was ever started ahead: nothing was proved of it"
