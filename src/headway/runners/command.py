"""Commands: programs that run for a while, say something, and end with a code (W-1, X-7)."""

import asyncio
import codecs
import os
import signal
from collections.abc import Callable, Sequence

from headway.model.errors import HeadwayError, Permanent
from headway.model.outcome import Json, Reply
from headway.model.payload import Execute
from headway.model.time import SECOND, Span
from headway.runners.process import Process
from headway.turn import Turn

KEPT_BYTES = 64 * 1024
"""So much of what a command writes last is kept; all of it is streamed."""
_PIECE = 4 * 1024
"""The most characters that are streamed at once."""
_SHOWN = 1_600
"""So many characters of the output are shown with an error."""
_GATE_GRACE_S = 1.0


class CommandFailed(HeadwayError):
    """A command ended with another code than 0, or by a signal."""

    code = "command_failed"

    def __init__(self, exit_code: int, output: str) -> None:
        self.exit_code = exit_code
        """Negative: the signal that ended it."""
        self.output = output
        """The last part of what it wrote."""
        shown = output if len(output) <= _SHOWN else f"…{output[-_SHOWN:]}"
        super().__init__(f"{_how(exit_code)}{f': {shown}' if shown else ''}")


class CommandRunner:
    """Runs the command that a job names, as a process group of its own and without a shell.

    The run is over when nothing of the group goes on: what the command leaves behind is ended too. A cancel is
    a SIGTERM to all of the group and, after the grace, a SIGKILL. Code 0 is success, with the end of the output as
    the reply; any other is an error that may be tried again, but a command that cannot be started never is.
    """

    runs_commands = True

    def __init__(self, grace: Span = 5 * SECOND) -> None:
        self._grace_s = grace / SECOND

    async def run(self, turn: Turn) -> Reply:
        command = None if turn.run.firing is None else turn.run.firing.command
        if command is None:
            raise Permanent(f"{turn.agent!r} runs the commands of jobs, and this run has none")
        output = _Output(turn.emit)
        process = Process(
            command.argv, _environment(command, turn), command.folder, command.stdin, output.take
        )
        try:
            code = await process.exit_code()
        finally:
            await process.end(self._grace_s)
        output.close()
        if code != 0:
            raise CommandFailed(code, output.tail)
        data: dict[str, Json] = {"exit": 0}
        if output.dropped:
            data["dropped"] = output.dropped
        return Reply(output.tail, data=data)


async def run_gate(argv: Sequence[str], timeout_s: float) -> bool:
    """Whether a command says yes, which is code 0 (X-7).

    Raises `Permanent` if it cannot be run, and `TimeoutError` if it takes too long.
    """
    process = Process(argv)
    try:
        async with asyncio.timeout(timeout_s):
            return await process.exit_code() == 0
    finally:
        await process.end(_GATE_GRACE_S)


class _Output:
    """Streams what a command writes, and keeps the end of it."""

    def __init__(self, emit: Callable[[str], None]) -> None:
        self._emit = emit
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._kept = bytearray()
        self.dropped = 0
        """How many bytes of the beginning were not kept."""

    @property
    def tail(self) -> str:
        kept = bytes(self._kept)
        if self.dropped:
            # The first character may have lost its beginning.
            kept = kept[next((i for i, byte in enumerate(kept[:4]) if byte & 0xC0 != 0x80), 0) :]
        return kept.decode(errors="replace").rstrip("\r\n")

    def take(self, data: bytes) -> None:
        self._kept += data
        if len(self._kept) > 2 * KEPT_BYTES:
            self._forget()
        self._stream(self._decoder.decode(data))

    def close(self) -> None:
        self._forget()
        self._stream(self._decoder.decode(b"", final=True))

    def _forget(self) -> None:
        excess = max(0, len(self._kept) - KEPT_BYTES)
        del self._kept[:excess]
        self.dropped += excess

    def _stream(self, text: str) -> None:
        for start in range(0, len(text), _PIECE):
            self._emit(text[start : start + _PIECE])


def _environment(command: Execute, turn: Turn) -> dict[str, str]:
    about_the_run = {
        "HEADWAY_RUN_ID": turn.id,
        "HEADWAY_TRACE_ID": turn.trace_id,
        "HEADWAY_JOB_ID": turn.job or "",
        "HEADWAY_SESSION": turn.session,
        "HEADWAY_ATTEMPT": str(turn.attempt),
        "HEADWAY_FENCE": str(turn.fence),
    }
    return {**os.environ, **dict(command.environment), **about_the_run}


def _how(exit_code: int) -> str:
    if exit_code >= 0:
        return f"exit code {exit_code}"
    try:
        return f"ended by {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"ended by signal {-exit_code}"
