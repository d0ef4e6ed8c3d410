"""A conversation as it is shown: what was said, who is at work, what waits, and what became of each message."""

import io

from rich.console import Console

from headway.cli.chat.editor import Editor
from headway.cli.chat.screen import Screen
from headway.cli.chat.talk import Entry, Talk, Who
from headway.model.words import Reason, State
from headway.wire.chat import ChatOutput, ChatReply, ChatTyping
from headway.wire.runs import OutcomeAnswer
from headway.wire.sessions import QueueAnswer, SessionAnswer


def outcome(
    state: State = State.DONE, reason: Reason | None = None, text: str = "", error: str = ""
) -> OutcomeAnswer:
    return OutcomeAnswer(
        state=state,
        reason=reason,
        text=text,
        attachments=(),
        data=None,
        error=error,
        into=None,
        tokens_in=0,
        tokens_out=0,
        code="",
        details=None,
    )


def replied(
    run_id: str, ended: OutcomeAnswer, into: str | None = None, *, echo: bool = False
) -> ChatReply:
    return ChatReply(run_id=run_id, session="s", outcome=ended, into=into, echo=echo)


def typing(run_id: str, *, on: bool = True) -> ChatTyping:
    return ChatTyping(run_id=run_id, session="s", typing=on)


def queue(running: int, waiting: int) -> SessionAnswer:
    return SessionAnswer(
        key="s",
        running_count=running,
        waiting_count=waiting,
        debouncing_count=0,
        agents=("support",),
        running=(),
        waiting=(),
        debouncing=(),
        queue=QueueAnswer(),
    )


def asked(*texts: str) -> Talk:
    talk = Talk("support")
    for number, text in enumerate(texts, 1):
        talk.say(f"k{number}", text)
        talk.taken(f"k{number}", f"r{number}")
    talk.entries.clear()
    return talk


def entries(talk: Talk) -> list[tuple[str, str]]:
    return [(str(entry.who), entry.text) for entry in talk.entries]


def test_a_reply_is_shown_and_its_message_waits_no_more() -> None:
    talk = asked("hello")
    assert talk.status == "support has not begun yet"
    talk.typing(typing("r1"))
    assert (talk.busy, talk.status) == (True, "support is typing")
    talk.reply(replied("r1", outcome(text="hi")))
    assert (entries(talk), talk.sent, talk.busy, talk.status) == ([("agent", "hi")], {}, False, "")


def test_what_waits_is_counted() -> None:
    talk = asked("one", "two")
    talk.queue = queue(1, 2)
    assert talk.status == "support is typing · 2 waiting"


def test_s7_of_messages_that_became_one_turn_only_one_has_the_reply() -> None:
    talk = asked("one", "two")
    talk.reply(replied("r1", outcome(text="both"), "m", echo=True))
    talk.reply(replied("r2", outcome(text="both"), "m"))
    assert (entries(talk), talk.sent) == ([("agent", "both")], {})


def test_s9_a_stop_is_told_once_by_its_own_answer() -> None:
    talk = asked("one")
    talk.say("k2", "/stop")
    talk.entries.clear()
    talk.reply(replied("r1", outcome(State.CANCELLED, Reason.STOPPED)))
    talk.answered("k2", "1 running stopped")
    assert (entries(talk), talk.failed) == ([("note", "1 running stopped")], 1)


def test_s9_a_reply_that_comes_after_the_answer_to_a_stop_says_nothing_more() -> None:
    talk = asked("one")
    talk.say("k2", "/stop")
    talk.entries.clear()
    talk.answered("k2", "1 running stopped")
    talk.reply(replied("r1", outcome(State.CANCELLED, Reason.STOPPED)))
    assert entries(talk) == [("note", "1 running stopped")]


def test_why_there_is_no_reply_is_said() -> None:
    talk = asked("one", "two", "three")
    talk.reply(replied("r1", outcome(State.FAILED, Reason.ERROR, error="boom")))
    talk.reply(replied("r2", outcome(State.CANCELLED, Reason.SUPERSEDED)))
    talk.reply(replied("r3", outcome(State.CANCELLED, Reason.STOPPED)))
    assert [text for _, text in entries(talk)] == [
        "no reply: failed/error: boom",
        "a newer message took over",
        "stopped",
    ]
    assert talk.failed == 3


def test_output_is_of_the_present_turn() -> None:
    talk = asked("one", "two")
    talk.typing(typing("r1"))
    talk.emitted(ChatOutput(run_id="r1", session="s", text="think\x1b[2Jing"))
    assert talk.output == "thinking"
    talk.typing(typing("r1", on=False))
    talk.reply(replied("r1", outcome(text="done")))
    talk.typing(typing("r2"))
    assert talk.output == ""


def test_what_was_refused_is_said_and_waits_no_more() -> None:
    talk = asked("one")
    talk.refused("k1", "the queue is full")
    assert (entries(talk), talk.sent) == ([("note", "not taken: the queue is full")], {})


def test_a_lost_connection_keeps_what_has_no_reply() -> None:
    talk = asked("one")
    talk.typing(typing("r1"))
    talk.lost()
    assert (list(talk.sent), talk.busy) == (["k1"], False)


def drawn(talk: Talk, editor: Editor, width: int = 50, *, ascii_only: bool = False) -> list[str]:
    console = Console(file=io.StringIO(), width=width, force_terminal=False, color_system=None)
    screen = Screen("support", ascii_only=ascii_only)
    with console.capture() as capture:
        for entry in talk.entries:
            console.print(screen.entry(entry))
        console.print(screen.below(talk, editor, 0, width=width))
    return [line.rstrip() for line in capture.get().splitlines()]


def test_the_screen_has_words_above_and_the_line_to_type_in_below() -> None:
    talk = asked("one")
    talk.typing(typing("r1"))
    talk.emitted(ChatOutput(run_id="r1", session="s", text="looking it up"))
    talk.entries.append(Entry(Who.YOU, "one\nand more"))
    talk.entries.append(Entry(Who.AGENT, "two\nlines"))
    talk.note("1 running stopped")
    editor = Editor()
    editor.feed("next")
    assert drawn(talk, editor) == [
        "» one",
        "  and more",
        "support: two",
        "         lines",
        "  1 running stopped",
        "  looking it up",
        "⠋ support is typing          /stop  /status  /quit",
        "» next",
    ]


def test_a_plain_terminal_gets_plain_signs() -> None:
    talk = asked("one")
    talk.queue = queue(1, 0)
    lines = drawn(talk, Editor(), ascii_only=True)
    assert all(line.isascii() for line in lines)


def test_trouble_is_shown_instead_of_who_types() -> None:
    talk = asked("one")
    talk.trouble = "the server is away; trying again"
    assert drawn(talk, Editor())[0].startswith("the server is away; trying again")
