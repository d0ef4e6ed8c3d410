"""A conversation as the person sees it: what was said, what is under way, and what waits."""

from collections import deque
from collections.abc import Iterable
from enum import StrEnum

from headway.cli.harmless import harmless
from headway.cli.runs.telling import ending_words
from headway.model.value import Value
from headway.model.words import Reason, State
from headway.wire.chat import ChatOutput, ChatReply, ChatTurn, ChatTyping
from headway.wire.runs import OutcomeAnswer
from headway.wire.sessions import SessionAnswer

_LONGEST_OUTPUT = 2_000


class Who(StrEnum):
    """Whose words an entry has."""

    YOU = "you"
    AGENT = "agent"
    NOTE = "note"


class Entry(Value, frozen=True):
    """Something that was said; it stays on the screen."""

    who: Who
    text: str
    old: bool = False
    """From before this chat was opened."""


class Sent(Value, frozen=True):
    """A message without a reply so far."""

    key: str
    """Says it is the same one where it is sent again, so that it is done once."""
    text: str
    run_id: str | None = None
    """None: the server has not said yet that it has it."""


class Talk:
    """Takes in what happens. Whoever draws takes `entries` out, and shows `status` and `output` below."""

    def __init__(self, agent: str) -> None:
        self.agent = agent
        self.entries: deque[Entry] = deque()
        self.sent: dict[str, Sent] = {}
        """By key, in the order in which they were said."""
        self.failed = 0
        """How many got no reply."""
        self.output = ""
        """What the present turn has emitted."""
        self.queue: SessionAnswer | None = None
        self.trouble = ""
        self._typing: dict[str, None] = {}
        self._stopped: set[str | None] = set()
        """Runs that a /stop may have reached: its answer has told what it stopped."""

    # What the person does.

    def say(self, key: str, text: str) -> None:
        self.entries.append(Entry(Who.YOU, text))
        self.sent[key] = Sent(key, text)

    def taken(self, key: str, run_id: str) -> None:
        if key in self.sent:
            self.sent[key] = Sent(key, self.sent[key].text, run_id)

    def answered(self, key: str, reply: str) -> None:
        """It was a chat command."""
        asked = self.sent.pop(key, None)
        if asked is not None and _is_stop(asked.text):
            self._stopped |= {sent.run_id for sent in self.sent.values()}
        self.note(reply)

    def refused(self, key: str, why: str) -> None:
        if self.sent.pop(key, None) is not None:
            self.failed += 1
        self.note(f"not taken: {why}")

    def note(self, text: str) -> None:
        self.entries.append(Entry(Who.NOTE, harmless(text)))

    def remember(self, turns: Iterable[ChatTurn]) -> None:
        """What was said before, the oldest first."""
        for turn in turns:
            outcome = turn.outcome
            self.entries.append(Entry(Who.YOU, harmless(turn.text), old=True))
            if outcome is not None and outcome.state is State.DONE:
                self.entries.append(Entry(Who.AGENT, harmless(outcome.text), old=True))
            elif outcome is not None and outcome.reason is not Reason.MERGED:
                self.entries.append(Entry(Who.NOTE, _without_reply(outcome), old=True))

    # What the server tells.

    def typing(self, told: ChatTyping) -> None:
        if told.typing:
            if not self._typing:
                self.output = ""
            self._typing[told.run_id] = None
        else:
            self._typing.pop(told.run_id, None)
            if not self._typing:
                self.output = ""

    def emitted(self, told: ChatOutput) -> None:
        self.output = (self.output + harmless(told.text))[-_LONGEST_OUTPUT:]

    def reply(self, told: ChatReply) -> None:
        """How a message ended. Of several that became one turn, only one has the reply."""
        self._typing.pop(told.run_id, None)
        if told.into is not None:
            self._typing.pop(told.into, None)
        if not self._typing:
            self.output = ""
        for key, sent in list(self.sent.items()):
            if sent.run_id == told.run_id:
                del self.sent[key]
        if told.echo:
            return
        if told.outcome.state is State.DONE:
            self.entries.append(Entry(Who.AGENT, _reply_text(told.outcome)))
        else:
            self.failed += 1
            if told.outcome.reason is not Reason.STOPPED or not self._stop_told(told.run_id):
                self.note(_without_reply(told.outcome))
        self._stopped.discard(told.run_id)

    def lost(self) -> None:
        """The connection is gone: who types is not known any more."""
        self._typing.clear()
        self.output = ""
        self.queue = None

    # What is shown.

    @property
    def busy(self) -> bool:
        """Whether there is something to stop."""
        running = self.queue.running_count if self.queue is not None else 0
        return bool(self._typing or running)

    @property
    def is_typing(self) -> bool:
        return bool(self._typing)

    @property
    def status(self) -> str:
        """One line: who is at work, and what waits."""
        if self.trouble:
            return self.trouble
        parts = []
        waiting = self._waiting()
        if self.busy:
            parts.append(f"{self.agent} is typing")
        elif waiting or self.sent:
            parts.append(f"{self.agent} has not begun yet")
        if waiting:
            parts.append(f"{waiting} waiting")
        return " · ".join(parts)

    def _stop_told(self, run_id: str) -> bool:
        """Whether a /stop has told of this run, or is on its way and will."""
        return run_id in self._stopped or any(_is_stop(sent.text) for sent in self.sent.values())

    def _waiting(self) -> int:
        if self.queue is None:
            return 0
        return self.queue.waiting_count + self.queue.debouncing_count


def _is_stop(text: str) -> bool:
    return text.lower().startswith("/stop")


def _reply_text(outcome: OutcomeAnswer) -> str:
    attached = [f"+ {one.name} {one.url}".rstrip() for one in outcome.attachments]
    return harmless("\n".join([outcome.text, *attached]).strip("\n"))


def _without_reply(outcome: OutcomeAnswer) -> str:
    if outcome.reason is Reason.STOPPED:
        return "stopped"
    if outcome.reason is Reason.SUPERSEDED:
        return "a newer message took over"
    detail = f": {outcome.error}" if outcome.error else ""
    return harmless(f"no reply: {ending_words(outcome)}{detail}")
