"""One session's queue: its order, its width, what it remembers, and by which settings it goes."""

import msgspec
import pytest

from headway.core.floor import Floor
from headway.core.live import LiveRun, kind_of
from headway.core.session import (
    BLANK,
    OVERFLOW_LINE_LENGTH,
    OVERFLOW_LINES,
    QueueRules,
    SessionQueue,
    message_number,
    overlaid,
)
from headway.model.run import (
    AgentName,
    LaneName,
    QueueOptions,
    Route,
    Run,
    RunId,
    SessionKey,
    SessionMemory,
)
from headway.model.settings import QueueSettings, Settings
from headway.model.time import SECOND
from headway.model.words import Drop, Mode, Source, State

FLOOR = Floor(Settings(), 0)


class Queue:
    """A session's queue, filled by name."""

    def __init__(self) -> None:
        self.session = SessionQueue(SessionKey("s"), 0, BLANK)
        self.runs: dict[str, LiveRun] = {}

    def add(self, name: str, source: Source = Source.MESSAGE, width: int = 1) -> LiveRun:
        run = Run(
            RunId(name), AgentName("a"), SessionKey("s"), source, LaneName("main"), 0, 0, name
        )
        live = self.runs[name] = LiveRun(
            run=run,
            session=self.session,
            lane=FLOOR.lane(LaneName("main")),
            agent=FLOOR.agent(AgentName("a")),
            state=State.QUEUED,
            kind=kind_of(run),
            order=len(self.runs),
        )
        live.width = width
        return live

    def join(self, name: str, source: Source = Source.MESSAGE) -> None:
        self.session.join(self.add(name, source))

    @property
    def line(self) -> list[str]:
        return [live.run.id for live in self.session.waiting]


def test_s1_first_in_first_out() -> None:
    queue = Queue()
    for name, source in (("a", Source.MESSAGE), ("b", Source.TASK), ("c", Source.FIRING)):
        queue.join(name, source)
    assert queue.line == ["a", "b", "c"]


def test_f4_heartbeats_step_behind_a_message_and_keep_their_own_order() -> None:
    queue = Queue()
    queue.join("h1", Source.HEARTBEAT)
    queue.join("t", Source.TASK)
    queue.join("h2", Source.HEARTBEAT)
    queue.join("m", Source.MESSAGE)
    assert queue.line == ["t", "m", "h1", "h2"]


@pytest.mark.parametrize(
    ("width", "running", "free"), [(1, 0, True), (1, 1, False), (3, 2, True), (3, 3, False)]
)
def test_s1_a_session_is_busy_at_its_width(width: int, running: int, free: bool) -> None:
    queue = Queue()
    queue.session.running = [queue.add(f"r{number}", width=3) for number in range(running)]
    assert queue.session.busy_for(width) is not free


def test_s1_a_run_that_wants_to_be_alone_is_not_joined() -> None:
    queue = Queue()
    queue.session.running = [queue.add("alone", width=1)]
    assert queue.session.width_with(3) == 1
    assert queue.session.busy_for(3)


def test_s6_the_cap_counts_waiting_messages_only() -> None:
    queue = Queue()
    queue.session.running = [queue.add("running")]
    for number in range(5):
        queue.join(f"t{number}", Source.TASK)
    queue.join("m0")
    assert not queue.session.is_full(2)
    queue.join("m1")
    assert queue.session.is_full(2)
    oldest = queue.session.oldest_message()
    assert oldest is queue.runs["m0"]


def test_s6_the_overflow_note_keeps_one_line_of_each_dropped_message() -> None:
    queue = Queue()
    session = queue.session
    for text in ("first\nsecond  line", "x" * 500):
        session.keep_line(msgspec.structs.replace(queue.add("m").run, text=text))
    first, second = session.take_lines()
    assert first == "first second line"
    assert len(second) == OVERFLOW_LINE_LENGTH
    assert second.endswith("…")
    assert session.take_lines() == ()
    assert session.memory == BLANK


def test_s6_a_very_long_overflow_keeps_the_newest_lines_and_counts_the_rest() -> None:
    queue = Queue()
    run = queue.add("m").run
    for number in range(OVERFLOW_LINES + 7):
        queue.session.keep_line(msgspec.structs.replace(run, text=str(number)))
    note, *lines = queue.session.take_lines()
    assert note == "(7 older messages)"
    assert lines == [str(number) for number in range(7, OVERFLOW_LINES + 7)]


@pytest.mark.parametrize(
    ("message_id", "number"),
    [
        ("9", 9),
        ("100", 100),
        ("007", 7),
        ("", None),
        (None, None),
        ("-1", None),
        ("1a", None),
        ("²", None),
    ],
)
def test_s9_message_ids_compare_as_numbers(message_id: str | None, number: int | None) -> None:
    assert message_number(message_id) == number


@pytest.mark.parametrize(
    ("sent_at", "message_id", "channel", "stale"),
    [
        (99, None, "web", True),
        (100, None, "web", False),
        (101, "1", "web", False),
        (None, "9", "web", True),
        (None, "10", "web", False),
        (None, "100", "web", False),
        (None, "9", "telegram", False),
        (None, "abc", "web", False),
        (None, None, "web", False),
    ],
)
def test_s9_stale_is_what_was_sent_before_the_cutoff(
    sent_at: int | None, message_id: str | None, channel: str, stale: bool
) -> None:
    queue = Queue()
    queue.session.memory = SessionMemory(cutoff_at=100, cutoff_id=10, cutoff_channel="web")
    run = msgspec.structs.replace(
        queue.add("m").run, sent_at=sent_at, message_id=message_id, route=Route(channel)
    )
    assert queue.session.is_stale(run) is stale


def test_s9_without_a_cutoff_nothing_is_stale() -> None:
    queue = Queue()
    assert not queue.session.is_stale(msgspec.structs.replace(queue.add("m").run, sent_at=0))


def test_s5_message_before_session_before_channel_before_global() -> None:
    rules = QueueRules(
        QueueSettings(mode=Mode.FOLLOWUP, cap=1, drop=Drop.NEW, debounce=1),
        {"web": QueueOptions(mode=Mode.COLLECT, cap=2, drop=Drop.OLD)},
    )
    session = QueueOptions(mode=Mode.STEER, cap=3)
    message = QueueOptions(mode=Mode.REJECT)
    web = Route("web")
    assert rules.resolve(message, session, web) == QueueSettings(Mode.REJECT, 3, Drop.OLD, 1)
    assert rules.resolve(None, session, web) == QueueSettings(Mode.STEER, 3, Drop.OLD, 1)
    assert rules.resolve(None, None, web) == QueueSettings(Mode.COLLECT, 2, Drop.OLD, 1)
    assert rules.resolve(None, None, Route("mail")) == QueueSettings(Mode.FOLLOWUP, 1, Drop.NEW, 1)


def test_s7_the_librarys_own_messages_are_not_debounced_unless_asked() -> None:
    rules = QueueRules(QueueSettings(), {})
    assert rules.resolve(None, None, None).debounce == 0
    assert rules.resolve(QueueOptions(debounce=SECOND), None, None).debounce == SECOND
    assert rules.resolve(None, None, Route("web")).debounce == QueueSettings().debounce


def test_s5_an_option_of_zero_is_said() -> None:
    assert overlaid(QueueSettings(), QueueOptions(debounce=0)).debounce == 0
    assert overlaid(QueueSettings(), QueueOptions()) == QueueSettings()


def test_s4_a_queue_with_nothing_in_it_is_idle() -> None:
    queue = Queue()
    assert queue.session.is_idle
    queue.join("m")
    assert not queue.session.is_idle
