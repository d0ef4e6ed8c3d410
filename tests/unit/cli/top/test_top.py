"""The live screen: what is drawn from a board, and what of the events comes onto it."""

import io

import msgspec
import pytest
from rich.console import Console

from headway.cli.top.board import Board, Note
from headway.cli.top.notes import SEEN, note_of
from headway.cli.top.picture import Picture
from headway.cli.top.watcher import Watcher
from headway.client import Client
from headway.gateway.routes.workers import WORKER
from headway.model.words import WorkerState
from headway.wire.lanes import LaneAnswer
from headway.wire.nodes import NodeAnswer
from headway.wire.sessions import SessionSummary
from headway.wire.stats import AgentLoadAnswer, LimitsAnswer, StatsAnswer
from headway.wire.workers import WorkerAnswer

NOW = 1_794_000_000_000_000
AT = "2026-11-06T21:20:00.000Z"


def lane(
    name: str, width: int, running: int, waiting: int = 0, *, paused: bool = False
) -> LaneAnswer:
    return LaneAnswer(
        name=name,
        width=width,
        reserve=0,
        cluster_limit=None,
        runs_per_minute=None,
        tokens_per_minute=None,
        paused=paused,
        running=running,
        waiting=waiting,
        started=7,
    )


def session(key: str, running: int = 0, waiting: int = 0) -> SessionSummary:
    return SessionSummary(
        key=key,
        running_count=running,
        waiting_count=waiting,
        debouncing_count=0,
        agents=("support",),
    )


STATS = StatsAnswer(
    node=3,
    name="web-1",
    started_at=AT,
    draining=False,
    limits=LimitsAnswer(
        max_queue=1000, max_queue_per_agent=100, max_inflight=20, max_inflight_per_agent=10
    ),
    queued=14,
    inflight=20,
    agents=(AgentLoadAnswer(agent_id="browser", queued=14, inflight=20, waiting=14, running=20),),
    lanes=(lane("main", 10, 10, 5), lane("cron", 0, 0, paused=True)),
    sessions=2,
    unknown_lanes=0,
    lease_left=None,
)
NODE = NodeAnswer(
    node=3,
    name="web-1",
    state="alive",
    since=AT,
    lease="30s",
    sessions=12,
    running=4,
    host="one",
)
BOARD = Board(
    NOW,
    "http://127.0.0.1:8787",
    STATS,
    (
        session("agent:support:web:dm:1", running=1),
        session("agent:support:web:dm:2", running=1, waiting=4),
        session("run:x-1", waiting=1),
        session("run:x-2", waiting=1),
    ),
    (NODE,),
    (Note(NOW, "browser", "failed/error: boom", bad=True, count=3),),
    per_second=1.5,
)


def drawn(board: Board, width: int = 110, height: int = 30, encoding: str = "utf-8") -> list[str]:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    console = Console(file=file, width=width, height=height, force_terminal=True, color_system=None)
    with console.capture() as capture:
        console.print(Picture(board))
    return [line.rstrip() for line in capture.get().splitlines()]


def test_lanes_agents_sessions_nodes_and_news_are_on_it() -> None:
    text = "\n".join(drawn(BOARD))
    for part in (
        "node 3 web-1",
        "10 running   5 waiting   2 sessions   20/20 tasks   14/1000 queued   1.5 done/s",
        "██████████   10/10",
        "paused",
        "● 3",
        "browser       20       14     20      14",
        "agent:support:web:dm:2        1        4",
        "and 2 runs without one",
        "browser               failed/error: boom ×3",
    ):
        assert part in text, part


def test_workers_are_counted_where_there_are_any() -> None:
    busy = msgspec.convert(WORKER, WorkerAnswer)
    idle = msgspec.structs.replace(busy, state=WorkerState.IDLE)
    board = msgspec.structs.replace(BOARD, workers=(busy, idle, idle))
    assert "3 workers, 1 busy" in "\n".join(drawn(board))
    assert "worker" not in "\n".join(drawn(BOARD))


def test_d8_the_death_of_a_worker_is_bad_news() -> None:
    note = note_of({"event": "WorkerDied", "at": AT, "agent": "a", "attempt": 1, "error": "gone"})
    assert note is not None
    assert (note.who, note.what, note.bad) == ("a", "attempt 1: gone", True)


def test_the_busiest_conversation_is_first() -> None:
    assert [each.key[-1] for each in BOARD.conversations] == ["2", "1"]
    assert BOARD.alone == 2


@pytest.mark.parametrize(("width", "height"), [(80, 24), (60, 15), (40, 10), (200, 60), (110, 34)])
def test_it_fits_every_terminal(width: int, height: int) -> None:
    many = tuple(session(f"agent:support:web:dm:{number}", waiting=1) for number in range(200))
    crowded = Board(NOW, "http://x", STATS, many, (NODE,) * 30, BOARD.notes * 100)
    lines = drawn(crowded, width, height)
    assert len(lines) <= height
    assert max(map(len, lines)) <= width


def test_there_is_room_for_all_agents_as_long_as_nothing_happens() -> None:
    loads = tuple(msgspec.structs.replace(STATS.agents[0], agent_id=f"a{n}") for n in range(7))
    quiet = Board(NOW, "http://x", msgspec.structs.replace(STATS, agents=loads), (), (NODE,))
    text = "\n".join(drawn(quiet, 100, 30))
    assert all(f"a{number} " in text for number in range(7))


def test_a_total_that_does_not_fit_is_left_out_and_never_cut() -> None:
    one = msgspec.structs.replace(STATS, sessions=1)
    totals = drawn(Board(NOW, "http://x", one, BOARD.sessions, (NODE,)), 60, 15)[1]
    assert totals.strip() == "10 running   5 waiting   1 session   20/20 tasks"


def test_a_plain_terminal_gets_plain_signs() -> None:
    assert "\n".join(drawn(BOARD, encoding="ascii")).isascii()


def test_a_server_that_does_not_answer_is_said() -> None:
    assert "connection refused" in drawn(Board(NOW, "http://x", trouble="connection refused"))[1]


def finished(agent: str = "support", took: str = "1.2s", **more: object) -> dict[str, object]:
    return {
        "event": "RunFinished", "at": AT, "runId": "r", "agent": agent, "attempt": 1,
        "state": "done", "reason": None, "error": "", "into": None, "took": took, **more,
    }  # fmt: skip


def test_o3_an_event_is_told_in_a_few_words() -> None:
    told = note_of(finished(took="1.234567s"))
    assert told is not None
    assert (told.who, told.what, told.bad) == ("support", "done in 1.2s", False)
    failed = note_of(finished(state="failed", reason="error", error="boom"))
    assert failed is not None
    assert (failed.what, failed.bad) == ("failed/error in 1.2s: boom", True)
    assert note_of(finished(into="other")) is None
    lost = note_of({"event": "StoreAway", "at": AT, "error": "disk\nfull\x1b[2J"})
    assert lost is not None
    assert lost.what == "store away, error disk full [2J"


def test_a_gap_of_unknown_size_is_not_called_none() -> None:
    gap = note_of({"event": "EventsMissed", "at": AT, "count": 0})
    assert gap is not None
    assert gap.what == "events may have been missed here"


def test_kinds_that_come_too_often_are_not_asked_for() -> None:
    assert "RunFinished" in SEEN
    assert not {"OutputEmitted", "TokensUsed", "RunSubmitted"} & set(SEEN)


def test_o3_the_same_news_is_counted_and_does_not_flood() -> None:
    watcher = Watcher(Client("http://127.0.0.1:1"))
    for took in ("1s", "2s", "3s"):
        watcher.note(finished("crawler", took))
        watcher.note(finished("browser", took))
    assert [(note.who, note.what, note.count) for note in watcher.board.notes] == [
        ("browser", "done in 3s", 3),
        ("crawler", "done in 3s", 3),
    ]
