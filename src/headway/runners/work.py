"""What programs that are run for attempts have in common: what they are told, and what their end means (W-1)."""

import os
import signal
from collections.abc import Mapping, Sequence

from headway.core.template import Unfillable, fill, fill_path
from headway.model.errors import InvalidInput, WorkerLost, WorkFailed
from headway.model.outcome import Json, Reply
from headway.model.runner import FROM_ENVIRONMENT
from headway.model.time import SECOND
from headway.runners.values import values_of
from headway.turn import Turn

COMMAND_FAILED = "command_failed"
COMMAND_CUT = "command_cut"
PATIENCE = 3 * SECOND
"""So much longer than its grace it may take until all of a program is gone."""
NOT_STARTED = "command_not_started"
_OWN = frozenset({"HEADWAY_CALLBACKS_SECRET"})
_SHOWN = 1_600
"""So many characters of the output are shown with an error."""


def command_of(command: Sequence[str], resume: Sequence[str], turn: Turn) -> tuple[str, ...]:
    """The program and its arguments, filled in.

    After an attempt that died, or for a run that goes on with an earlier one, it is what resumes the agent's own
    session, if there is such a command (W-3).
    """
    again = turn.attempt > 1 or turn.run.resumes is not None
    values = values_of(turn)
    argv = tuple(fill(text, values) for text in (resume if again and resume else command))
    if not argv or not argv[0]:
        raise cannot_start("", "the command is empty")
    if any("\0" in text for text in argv):
        raise cannot_start(argv[0], "no argument may have a NUL in it")
    return argv


def folder_of(folder: str, program: str, turn: Turn) -> str:
    """Where a program is run, filled in: whoever names a session cannot choose another folder by it."""
    try:
        return fill_path(folder, values_of(turn))
    except Unfillable as wrong:
        raise cannot_start(program, str(wrong)) from None


class Environment:
    """What an agent's programs find in their environment: what was inherited, what was set, the run (W-1, X-4).

    What signs callbacks is not inherited: no agent's words are to be taken for a notice (T-4).

    What was set is a template, or `env:NAME`: the value that the variable has when the runner is made, as it is.
    """

    def __init__(self, said: Mapping[str, str], inherited: Mapping[str, str] = os.environ) -> None:
        self._inherited = inherited
        self._templates: dict[str, str] = {}
        self._taken: dict[str, str] = {}
        for name, value in said.items():
            if not value.startswith(FROM_ENVIRONMENT):
                self._templates[name] = value
                continue
            variable = value.removeprefix(FROM_ENVIRONMENT)
            if variable not in inherited:
                raise InvalidInput(f"environment.{name}", value, "a variable that is set")
            self._taken[name] = inherited[variable]

    def of(self, turn: Turn) -> dict[str, str]:
        values = values_of(turn) if self._templates else {}
        filled = {name: fill(text, values) for name, text in self._templates.items()}
        inherited = {name: self._inherited[name] for name in self._inherited.keys() - _OWN}
        return {**inherited, **self._taken, **filled, **about(turn)}


def about(turn: Turn) -> dict[str, str]:
    """The run, as its program is told of it."""
    return {
        "HEADWAY_RUN_ID": turn.id,
        "HEADWAY_TRACE_ID": turn.trace_id,
        "HEADWAY_JOB_ID": turn.job or "",
        "HEADWAY_SESSION": turn.session,
        "HEADWAY_ATTEMPT": str(turn.attempt),
        "HEADWAY_FENCE": str(turn.fence),
        "HEADWAY_AGENT": turn.agent,
    }


def cannot_start(program: str, reason: str) -> WorkFailed:
    """A program that never works as it was asked for: trying again is of no use."""
    return WorkFailed(f"{program!r} cannot be run: {reason}", NOT_STARTED, permanent=True)


def result_of(exit_code: int, output: str, dropped: int = 0, *, resumable: bool = False) -> Reply:
    """What an attempt is worth whose program ended so: its reply, or an error that is raised.

    A program that something else killed can be resumed, if there is a command for that: then it counts as dead,
    not as failed.
    """
    details: dict[str, Json] = {"exit": exit_code, "output": output}
    if dropped:
        details["dropped"] = dropped
    if exit_code == 0:
        return Reply(output, data={"exit": 0, "dropped": dropped} if dropped else {"exit": 0})
    shown = output if len(output) <= _SHOWN else f"…{output[-_SHOWN:]}"
    said = f"{how(exit_code)}{f': {shown}' if shown else ''}"
    if exit_code < 0 and resumable:
        raise WorkerLost(said, details)
    raise WorkFailed(said, COMMAND_FAILED, details)


def cut_short(exit_code: int | None, output: str, dropped: int = 0) -> WorkFailed:
    """What is told of a program that was ended because its attempt was cut: what it wrote until then is kept."""
    details: dict[str, Json] = {"exit": exit_code, "output": output}
    if dropped:
        details["dropped"] = dropped
    said = "it was ended" if exit_code is None else f"it was ended: {how(exit_code)}"
    return WorkFailed(said, COMMAND_CUT, details)


def how(exit_code: int) -> str:
    """How a program ended, in words; negative codes are signals."""
    if exit_code >= 0:
        return f"exit code {exit_code}"
    try:
        return f"ended by {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"ended by signal {-exit_code}"
