"""The first process of a pane: starts the program, and stays until tmux has read all that it wrote.

It is a small program of its own, which tmux starts as `python -I -S pane_start.py FILE`; it needs nothing but the
standard library, and reads from the file what to run. So neither the texts of a run nor its secrets go through
tmux, which bounds the length of a command, reads some of its characters as its own, and shows it to every user of
the machine; and no program inherits the environment that the server of tmux once was started with.

When the first process of a terminal ends, the system throws away what was written and not yet read. So a program
that writes its answer and ends would lose the end of it. This process outlives the program: it asks the terminal
for an answer, which comes when all before it was read, and then ends in the same way as the program did.
"""

import json
import os
import resource
import select
import signal
import sys
import termios
from pathlib import Path
from typing import NoReturn

_OF_THE_PANE = ("TMUX", "TMUX_PANE", "TERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION")
"""What only tmux knows."""
_OF_ANOTHER_TERMINAL = ("LINES", "COLUMNS")
_FOR_THE_PROGRAM = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGTSTP,
    signal.SIGTTIN,
    signal.SIGTTOU,
)
"""Meant for the program, which is in the same group: it decides what becomes of both."""
_IGNORED_BY_PYTHON = (signal.SIGPIPE, signal.SIGXFSZ)
_NOT_STARTED = 127
_ARE_YOU_THERE = b"\x1b[5n"
_I_AM = b"\x1b[0n"
_ANSWERS_WITHIN_S = 10.0


def main(file: Path) -> NoReturn:
    told = json.loads(file.read_text())
    file.unlink()
    for number in _FOR_THE_PROGRAM:
        signal.signal(number, signal.SIG_IGN)
    program = os.fork()
    if program == 0:
        _become(told["argv"], told["environment"], told["folder"], file)
    _, status = os.waitpid(program, 0)
    _wait_until_read()
    _end_alike(os.waitstatus_to_exitcode(status))


def _become(argv: list[str], environment: dict[str, str], folder: str, file: Path) -> NoReturn:
    for number in (*_FOR_THE_PROGRAM, *_IGNORED_BY_PYTHON):
        signal.signal(number, signal.SIG_DFL)
    for name in (*_OF_THE_PANE, *_OF_ANOTHER_TERMINAL):
        environment.pop(name, None)
    environment.update({name: os.environ[name] for name in _OF_THE_PANE if name in os.environ})
    try:
        if folder:
            _enter(folder)
        os.execvpe(argv[0], argv, environment)
    except (OSError, ValueError) as wrong:
        _fail(file, wrong)


def _enter(folder: str) -> None:
    try:
        os.chdir(folder)
    except OSError as wrong:
        wrong.strerror = f"there is no folder {folder!r} to run it in ({wrong.strerror})"
        raise


def _fail(file: Path, wrong: OSError | ValueError) -> NoReturn:
    """Nobody else knows why, so it is left beside the file."""
    number, reason = None, str(wrong)
    if isinstance(wrong, OSError):
        number, reason = wrong.errno, wrong.strerror or reason
    Path(f"{file}.failed").write_text(json.dumps({"reason": reason, "errno": number}))
    sys.stderr.write(f"{reason}\n")
    sys.stderr.flush()
    os._exit(_NOT_STARTED)


def _wait_until_read() -> None:
    terminal, said = sys.stdin.fileno(), b""
    try:
        mode = termios.tcgetattr(terminal)
        mode[3] &= ~(termios.ECHO | termios.ICANON)
        termios.tcsetattr(terminal, termios.TCSANOW, mode)
        os.write(terminal, _ARE_YOU_THERE)
        while _I_AM not in said:
            if not select.select([terminal], [], [], _ANSWERS_WITHIN_S)[0]:
                return
            # What a person typed meanwhile comes first.
            more = os.read(terminal, 1024)
            if not more:
                return
            said = (said + more)[-1024:]
    except (OSError, termios.error):
        return  # The pane was closed: nobody reads.


def _end_alike(code: int) -> NoReturn:
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -code not in {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
