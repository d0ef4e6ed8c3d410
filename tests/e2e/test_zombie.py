"""D-4, X-2, X-4 on PostgreSQL: a node frozen past its lease comes back, and nothing it does counts.

Node `early` is frozen in the middle of two turns, one of which has taken a steered message and has something to
say. Node `late` takes over and finishes everything. Then `early` is thawed with its turns just about to end.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import headway
from headway import Headway, Route
from tests.e2e.chaos.harness import AGENTS, QUICK
from tests.e2e.ledger import Line, read_lines, whole_lines
from tests.e2e.processes import Process, ended_at_last, worker
from tests.e2e.stored import rows
from tests.e2e.waiting import until
from tests.postgres import PostgresServer

TABLES = "select tablename from pg_tables where schemaname = 'headway'"
ON_PURPOSE = {"nodes", "sessions", "meta", "events", "snapshots"}
"""These change when a node joins or dies, or measures its machine. All others an old owner could only spoil."""


class Scene:
    """What can be seen from outside of both nodes."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder

    def lines(self, kind: str, process: str) -> list[Line]:
        return [
            line
            for line in read_lines(self.folder)
            if line.kind == kind and line.process == process
        ]

    def tape(self) -> list[tuple[str, str, str]]:
        """Who delivered what: process, run, text."""
        decoder = msgspec.json.Decoder(tuple[str, str, str])
        return [decoder.decode(row) for row in whole_lines(self.folder / "tape.jsonl")]

    async def kept(self) -> dict[str, list[str]]:
        """Every row of every table, as text."""
        names = {str(name) for (name,) in (await rows(self.url, TABLES))[0]}
        tables = sorted(names - ON_PURPOSE)
        queries = [f"select row::text from headway.{table} as row order by 1" for table in tables]
        answers = await rows(self.url, *queries)
        return {
            table: [str(row[0]) for row in answer]
            for table, answer in zip(tables, answers, strict=True)
        }


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    server = PostgresServer()
    server.start()
    yield server
    server.remove()


def test_a_thawed_zombie_changes_nothing(server: PostgresServer, tmp_path: Path) -> None:
    early = worker("early", AGENTS, server.url, tmp_path, QUICK)
    with ended_at_last([early]):
        early.wait_for(" runs ")
        headway.run(_play(Scene(server.url, tmp_path), early))


async def _play(scene: Scene, early: Process) -> None:
    hw = Headway(scene.url, name="client")
    hw.remote_agent("keeper", steerable=True)
    hw.remote_agent("thread")
    chat = Route("tape", peer="ann")
    async with hw:
        turn = await hw.submit("keeper", "1 hold", session="chat", route=chat, debounce=0)
        plain = await hw.submit("thread", "1 hold", session="plain", route=chat, debounce=0)
        await until(lambda: len(scene.lines("begin", "early")) == 2, "both turns began on early")
        steered = await hw.submit(
            "keeper", "2 steered", session="chat", route=chat, debounce=0, mode="steer"
        )
        await until(lambda: len(scene.lines("beat", "early")) == 1, "the message was taken")
        await until(lambda: len(scene.tape()) == 1, "what the turn said was delivered")
        # Were it frozen before it has written that down, late would deliver it once more, after a minute.
        await until(lambda: _delivered(scene), "early knows that it was delivered")

        early.freeze()
        late = worker("late", AGENTS, scene.url, scene.folder, QUICK)
        with ended_at_last([late]):
            outcomes = [await handle.wait() for handle in (turn, plain, steered)]
            await until(lambda: len(scene.tape()) == 4, "late delivered its three replies")
            await until(lambda: _delivered(scene), "the outbox is empty")
            before, tape = await scene.kept(), scene.tape()

            (scene.folder / "go").touch()
            early.thaw()
            await until(lambda: _rejoined(hw), "early found out that it is dead, and came back")
            await until(lambda: bool(_ends(scene)), "a zombie's turn came to its end")
            # The zombie's writes are on their way or refused by now; one more run through the same node's
            # scribe and the same tables comes behind them.
            late.end()
            again = await hw.submit("keeper", "3", session="chat", route=chat, debounce=0)
            assert (await again.wait()).ok
            await until(lambda: len(scene.tape()) >= 5, "early's own new reply was delivered")
            await until(lambda: _delivered(scene), "the outbox is empty again")

    texts = [outcome.text.split()[:2] for outcome in outcomes]
    assert texts == [["1", "2"], ["1", "2"], ["2", "1"]], (
        "each ended on late, by its latest attempt"
    )
    after = await scene.kept()
    for table, kept in after.items():
        others = [row for row in kept if again.id not in row]
        assert others == before[table], f"{table}: everything is as late left it"
    assert len(before["past_attempts"]) == 2
    assert all("orphaned" in row for row in before["past_attempts"])

    assert tape[0] == ("early", turn.id, "1: took 2 steered"), "said while it still counted"
    assert {(process, run) for process, run, _ in tape[1:]} == {
        ("late", handle.id) for handle in (turn, plain, steered)
    }
    assert scene.tape()[:4] == tape
    assert scene.tape()[4][:2] == ("early", again.id), "and nothing that the zombies said"
    fences = [(line.session, line.fence) for line in _ends(scene) if line.number == 1]
    newest = {line.session: line.fence for line in scene.lines("begin", "late")}
    assert all(fence < newest[session] for session, fence in fences), "a tool could tell them"


def _ends(scene: Scene) -> list[Line]:
    return [line for line in scene.lines("end", "early") if line.number == 1]


async def _delivered(scene: Scene) -> bool:
    return not (await scene.kept())["outbox"]


async def _rejoined(hw: Headway) -> bool:
    """Whether there are two nodes called early: a dead one and a living one."""
    return {node.ended for node in await hw.nodes() if node.name == "early"} == {"dead", ""}
