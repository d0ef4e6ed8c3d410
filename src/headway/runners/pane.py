"""A pane as tmux tells of it, and what is written on it so that it is found again."""

from headway.model.run import AgentName, RunId
from headway.model.time import SECOND, Instant
from headway.model.value import Value
from headway.runners.family import Leader
from headway.turn import Fence

_FIELDS = (
    "@headway_run",
    "@headway_attempt",
    "@headway_agent",
    "@headway_store",
    "@headway_fence",
    "@headway_born",
    "@headway_adopted",
    "@headway_ending",
    "pane_id",
    "pane_pid",
    "pane_dead",
    "pane_dead_status",
    "pane_dead_signal",
    "cursor_x",
    "cursor_y",
    "history_size",
    "history_limit",
    "history_bytes",
    "window_activity",
    "session_created",
    "pid",
    "session_name",
)
"""The last one may hold anything, if a person gave the session another name."""
FORMAT = "|".join(f"#{{{name}}}" for name in _FIELDS)


class Label(Value, frozen=True):
    """What is written on a pane for good."""

    run_id: RunId
    attempt: int
    agent: AgentName
    store: str

    @property
    def name(self) -> str:
        """The name of its session. tmux wants neither dots nor colons, and reads `#` and `%` as its own."""
        return f"hw-{escaped(self.run_id)}-{self.attempt}"

    @property
    def mark(self) -> tuple[str, str]:
        """A variable that all of its processes have, and no others."""
        return "HEADWAY_WORKER", f"{self.store}:{self.run_id}.{self.attempt}"


class Pane(Value, frozen=True):
    """A pane of Headway as it is just now."""

    label: Label
    fence: Fence
    id: str
    session: str
    leader: Leader
    dead: bool
    exit_code: int | None
    """None: it has not ended, or how is not known yet; negative: by which signal."""
    adopted: bool
    ending: bool
    """Somebody has decided to end it."""
    created_at: Instant
    server: int
    """The process that all panes are children of."""
    column: int
    history: int
    limit: int
    stamp: tuple[str, ...]
    """Changes with what is written, though not with every letter of it."""


def attach_command(socket: str, session: str, *, read_only: bool = False) -> list[str]:
    """What shows a session to a person."""
    reading = ["-r"] if read_only else []
    return ["tmux", "-L", socket, "attach-session", *reading, "-t", f"={session}"]


def escaped(text: str) -> str:
    """The same, always the same way, in letters that tmux takes as they are."""
    return "".join(
        letter
        if letter.isascii() and (letter.isalnum() or letter in "-_")
        else f"~{ord(letter):x}~"
        for letter in text
    )


def unescaped(text: str) -> str:
    """What was escaped."""
    pieces = text.split("~")
    pieces[1::2] = [chr(int(piece, 16)) for piece in pieces[1::2]]
    return "".join(pieces)


def read_pane(line: str) -> Pane | None:
    """A pane, if it is one of Headway's."""
    told = dict(zip(_FIELDS, line.split("|", len(_FIELDS) - 1), strict=True))
    if not told["@headway_run"]:
        return None
    epoch, _, ticket = told["@headway_fence"].partition(".")
    status, number = told["pane_dead_status"], told["pane_dead_signal"]
    return Pane(
        Label(
            RunId(unescaped(told["@headway_run"])),
            int(told["@headway_attempt"]),
            AgentName(unescaped(told["@headway_agent"])),
            told["@headway_store"],
        ),
        Fence(int(epoch), int(ticket)),
        told["pane_id"],
        told["session_name"],
        Leader(int(told["pane_pid"]), float(told["@headway_born"] or 0)),
        dead=told["pane_dead"] == "1",
        exit_code=int(status) if status else -int(number) if number else None,
        adopted=told["@headway_adopted"] == "1",
        ending=told["@headway_ending"] == "1",
        created_at=int(told["session_created"]) * SECOND,
        server=int(told["pid"]),
        column=int(told["cursor_x"] or 0),
        history=int(told["history_size"] or 0),
        limit=int(told["history_limit"] or 0),
        stamp=tuple(
            told[name]
            for name in ("pane_dead", "cursor_x", "cursor_y", "history_bytes", "window_activity")
        ),
    )
