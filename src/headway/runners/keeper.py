"""The keeper of one command: its parent, which reads what it writes and learns how it ended (W-2).

A program of its own, started as `python -I -S keeper.py FOLDER LOCK FIRST TASK`. The process that wants the
command may be killed at any moment; only a parent learns a child's exit code, so the parent is this small program,
which goes on. It imports nothing but a little of the standard library: it is started for every command. The other
end of what it speaks is `attached.py`, which takes the words from here.

It holds an open, locked file: as long as it lives, and no longer, the lock is taken. Its folder tells who it is
(`worker.json`) and at last how the command ended (`ended.json`). Whoever looks after the command connects to
`socket` and shows its fence; a higher one takes over from a lower one.
"""

import binascii
import errno
import json
import os
import select
import signal
import socket
import struct
import sys
import time

TYPE_CHECKING = False
"""As type checkers know it; the module that has it takes long to load."""
if TYPE_CHECKING:
    import ctypes
    from typing import NoReturn, TypedDict

    class Task(TypedDict):
        """What a keeper is to do. Texts for the system are its bytes, one character for each."""

        argv: list[str]
        environment: list[tuple[str, str]]
        folder: str
        stdin: str
        grace_s: float
        output: int
        outlives: bool
        host: str
        fence: list[int]
        marks: list[tuple[str, str]]
        started_at: int


HEAD = struct.Struct(">cI")
"""Before each thing that is said: what it is, and how many bytes follow."""

# What is said to a keeper.
ATTACH = b"A"
ASK = b"T"
KILL = b"K"
LOOK = b"L"
DISCARD = b"X"
# What a keeper says.
OUTPUT = b"O"
DROPPED = b"D"
ENDED = b"E"
STATE = b"S"
TAKEN = b"G"

ABOUT = "worker.json"
END = "ended.json"
SOCKET = "socket"

_PIECE = 64 * 1024
_SHOWN = 8 * 1024
"""So much of the end of the output is told to who only looks."""
_LONGEST_REQUEST = 4 * 1024
_MOST_LEFT = 1024 * 1024
"""No pipe holds more, unless the administrator says so."""
_QUICK_MS = 5
_SLOW_MS = 100
"""Between two looks at what is being ended, at first and later: nobody is told of a grandchild's end."""
_AGAIN_MS = 1_000
"""Between two tries to write down how the command ended."""
_LINGER_S = 5.0
"""So long the last words are offered to who is attached; they are on disk as well."""
_LINUX = sys.platform == "linux"
_SET_DEATH_SIGNAL = 1
_SET_SUBREAPER = 36


class Process:
    """One line of the system's table of processes."""

    __slots__ = ("born", "cpu", "dead", "group", "parent", "session")

    def __init__(self, stat: bytes) -> None:
        # The name, in parentheses, may hold anything.
        fields = stat[stat.rindex(b")") + 2 :].split()
        self.dead = fields[0] in b"ZX"
        self.parent = int(fields[1])
        self.group = int(fields[2])
        self.session = int(fields[3])
        self.cpu = int(fields[11]) + int(fields[12])
        self.born = int(fields[19]) / os.sysconf("SC_CLK_TCK")


def process(pid: int) -> Process | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return Process(file.read())
    except (OSError, ValueError):
        return None


def processes() -> dict[int, Process]:
    """All processes by their numbers; empty where the system does not show them as files."""
    if not _LINUX:
        return {}
    numbers = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    return {pid: found for pid in numbers if (found := process(pid)) is not None}


def descendants(table: dict[int, Process], root: int) -> list[int]:
    """All that the process has started, and what that has started."""
    children: dict[int, list[int]] = {}
    for pid, found in table.items():
        children.setdefault(found.parent, []).append(pid)
    every = list(children.get(root, ()))
    for pid in every:  # Grows meanwhile.
        every += children.get(pid, ())
    return every


def send(pid: int, born: float, number: int) -> None:
    """Signal this very process, not one that got its number meanwhile."""
    try:
        if not hasattr(os, "pidfd_open"):
            os.kill(pid, number)
            return
        handle = os.pidfd_open(pid)
        try:
            found = process(pid)
            if found is not None and found.born == born:
                signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)
    except OSError:
        return  # It has ended just now, or has become another user's.


def machine() -> str:
    """Where the numbers of processes mean the same: one start of a machine, and there one room of processes."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return f"{file.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


class Line:
    """A connection to somebody who looks after the command, or only looks."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.connection = connection
        self.came = bytearray()
        self.goes = bytearray()
        self.broken = False

    def say(self, kind: bytes, body: bytes | bytearray = b"") -> None:
        if self.broken:
            return
        self.goes += HEAD.pack(kind, len(body))
        self.goes += body
        self.flush()

    def flush(self) -> None:
        try:
            while self.goes:
                sent = self.connection.send(self.goes[:_PIECE])
                del self.goes[:sent]
        except BlockingIOError:
            return
        except OSError:
            self.break_off()

    def heard(self) -> list[tuple[bytes, bytes]]:
        """What was said since; also sees that nobody is there any more."""
        try:
            data = self.connection.recv(_LONGEST_REQUEST)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        if not data:
            self.break_off()
        self.came += data
        requests = []
        while len(self.came) >= HEAD.size:
            kind, size = HEAD.unpack_from(self.came)
            if size > _LONGEST_REQUEST:
                self.break_off()
                break
            if len(self.came) < HEAD.size + size:
                break
            requests.append((kind, bytes(self.came[HEAD.size : HEAD.size + size])))
            del self.came[: HEAD.size + size]
        return requests

    def break_off(self) -> None:
        self.broken = True
        self.goes.clear()


class NotStarted(Exception):
    """The command could not be started."""

    def __init__(self, stage: str, number: int) -> None:
        self.stage = stage
        self.number = number


class Keeper:
    """One command, from its start to its end."""

    def __init__(self, task: "Task", folder: str, first: socket.socket) -> None:
        self._task = task
        self._folder = folder
        self._fence = task["fence"]
        self._size = task["output"]
        self._grace_s = task["grace_s"]
        self._outlives = task["outlives"]
        self._attached: Line | None = Line(first)
        self._lines: list[Line] = [self._attached]
        self._door: socket.socket | None = None
        self._kept = bytearray()
        self._written = 0
        self._pipe = -1
        self._leader = 0
        self._leader_born = 0.0
        self._exit: int | None = None
        self._adopted = False
        self._asked = False
        self._told_to_end = False
        self._discards = False
        self._ends = ""
        """Who is to be ended: `session`, what the command left behind; `all`, whatever it ever started."""
        self._kill_at = 0.0
        self._pause_ms = _QUICK_MS
        self._end: bytes | None = None
        self._libc = _libc() if _LINUX else None
        self._wake, self._waker = os.pipe()

    def keep(self) -> None:
        """Start the command, look after it until it and what it left behind have ended, and tell how."""
        self._get_ready()
        try:
            self._open()
            self._describe()
            self._start()
        except NotStarted as wrong:
            self._end = _said({"stage": wrong.stage, "errno": wrong.number})
        except OSError as wrong:
            self._end = _said({"stage": "worker", "errno": wrong.errno or errno.EIO})
        else:
            self._describe_again()
        while self._end is None:
            self._wait(self._pause())
            self._reap()
            if self._told_to_end and not self._ends:
                self._end_all(self._grace_s)
            if self._exit is not None or self._ends:
                self._end_further()
        self._tell_the_end(self._end)

    def abandon(self, why: str) -> None:
        """Something is wrong here: nothing is left running that nobody looks after."""
        self._ends = "all"
        self._signal(signal.SIGKILL)
        self._tell_the_end(_said({"broken": why}))

    def _pause(self) -> int | None:
        if not self._ends:
            return None
        self._pause_ms = min(2 * self._pause_ms, _SLOW_MS)
        return self._pause_ms

    # Getting ready.

    def _get_ready(self) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.set_blocking(self._wake, False)
        os.set_blocking(self._waker, False)
        signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        # Handlers, because what is ignored here would be ignored by the command as well.
        for number in (signal.SIGCHLD, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, lambda *_: None)
        signal.signal(signal.SIGTERM, self._be_told_to_end)
        if self._libc is not None:
            self._libc.prctl(_SET_SUBREAPER, 1, 0, 0, 0)

    def _open(self) -> None:
        door = socket.socket(socket.AF_UNIX)
        # Relative, because the whole path may be longer than such an address can be.
        door.bind(SOCKET)
        door.listen(16)
        door.setblocking(False)
        self._door = door

    def _be_told_to_end(self, *_: object) -> None:
        self._told_to_end = True

    def _describe(self) -> None:
        own = process(os.getpid())
        about = {
            "pid": os.getpid(),
            "born": 0.0 if own is None else own.born,
            "leader": self._leader,
            "leader_born": self._leader_born,
            "machine": machine(),
            "host": self._task["host"],
            "fence": self._fence,
            "marks": self._task["marks"],
            "started_at": self._task["started_at"],
            "adopted": self._adopted,
        }
        _write(ABOUT, _said(about), lasting=False)

    def _describe_again(self) -> None:
        try:
            self._describe()
        except OSError:
            return  # A full disk: who looks finds what was written before.

    # The command.

    def _start(self) -> None:
        stdin = self._stdin()
        self._pipe, output = os.pipe()
        wrong, says_wrong = os.pipe()
        keeper = os.getpid()
        try:
            pid = os.fork()
        except OSError as failed:
            raise NotStarted("fork", failed.errno or errno.EAGAIN) from failed
        if pid == 0:
            self._become(keeper, stdin, output, says_wrong)
        for end in (stdin, output, says_wrong):
            os.close(end)
        with os.fdopen(wrong, "rb") as file:
            said = file.read()
        if said:
            os.waitpid(pid, 0)
            stage, number = said.decode().split()
            raise NotStarted(stage, int(number))
        self._leader = pid
        os.set_blocking(self._pipe, False)
        found = process(pid)
        self._leader_born = 0.0 if found is None else found.born

    def _stdin(self) -> int:
        """A file, not a pipe: nobody has to feed a command that does not read. It has no name."""
        words = _bytes(self._task["stdin"])
        if not words:
            return os.open(os.devnull, os.O_RDONLY)
        try:
            file = os.open("stdin", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            os.unlink("stdin")
            view = memoryview(words)
            while view:
                view = view[os.write(file, view) :]
            os.lseek(file, 0, os.SEEK_SET)
        except OSError as failed:
            raise NotStarted("stdin", failed.errno or errno.EIO) from failed
        return file

    def _become(self, keeper: int, stdin: int, output: int, says_wrong: int) -> "NoReturn":
        """In the new process: be the command, or say why not."""
        stage = "program"
        try:
            os.setsid()
            if self._libc is not None:
                self._libc.prctl(_SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
                if os.getppid() != keeper:  # It was killed before that.
                    os._exit(1)
            os.dup2(stdin, 0)
            os.dup2(output, 1)
            os.dup2(output, 2)
            stage = "folder"
            os.chdir(_bytes(self._task["folder"]))
            stage = "program"
            # This interpreter ignores them; the command shall not.
            for number in (signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)
            argv = [_bytes(text) for text in self._task["argv"]]
            pairs = self._task["environment"]
            environment = {_bytes(name): _bytes(value) for name, value in pairs}
            os.execvpe(argv[0], argv, environment)
        except OSError as failed:
            os.write(says_wrong, f"{stage} {failed.errno}".encode())
        except ValueError:
            os.write(says_wrong, f"{stage} {errno.EINVAL}".encode())
        finally:
            os._exit(127)

    def _reap(self) -> None:
        """Collect whatever has ended: also what the command left to nobody comes to us."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self._leader:
                self._exit = os.waitstatus_to_exitcode(status)

    # Its end.

    def _end_all(self, grace_s: float) -> None:
        """End the command and whatever descends from it, also what has left its group."""
        if self._ends != "all":
            self._ends = "all"
            self._kill_at = time.monotonic() + grace_s
            self._pause_ms = _QUICK_MS
            if grace_s > 0:
                self._ask()
        elif grace_s == 0:
            self._kill_at = 0.0

    def _end_further(self) -> None:
        if not self._ends:
            if not self._has_kin():
                self._conclude()
                return
            self._ends = "session"
            self._kill_at = time.monotonic() + self._grace_s
            if not self._living():
                self._conclude()
                return
            self._ask()
        if self._exit is not None and not self._living():
            self._conclude()
        elif time.monotonic() >= self._kill_at:
            self._signal(signal.SIGKILL)

    def _ask(self) -> None:
        # What was stopped shall hear it too.
        self._signal(signal.SIGTERM, signal.SIGCONT)

    def _has_kin(self) -> bool:
        """Whether there may be anything of the command besides its first process."""
        if not _LINUX:
            return _exists(self._leader)
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return False
        return True

    def _living(self) -> list[tuple[int, float]]:
        """Who of those that are to be ended goes on: number and birth."""
        if not _LINUX:
            there = _exists(self._leader) if self._exit is not None else True
            return [(self._leader, 0.0)] if there else []
        table = processes()
        kin = [(pid, table[pid]) for pid in descendants(table, os.getpid())]
        return [
            (pid, found.born)
            for pid, found in kin
            if not found.dead
            and (self._ends == "all" or self._leader in {found.session, found.group})
        ]

    def _signal(self, *numbers: int) -> None:
        for pid, born in self._living():
            for number in numbers:
                if _LINUX:
                    send(pid, born, number)
                else:
                    _signal_group(pid, number)

    def _conclude(self) -> None:
        """All is over: read what is still in the pipe, and say how it ended."""
        self._reap()
        left = _MOST_LEFT
        while left > 0 and self._pipe >= 0:
            before = self._written
            self._read()
            if self._written == before:
                break
            left -= self._written - before
        self._close_pipe()
        del self._kept[: max(0, len(self._kept) - self._size)]
        self._end = _said(
            {
                "exit": self._exit,
                "output": binascii.b2a_base64(self._kept, newline=False).decode(),
                "dropped": self._written - len(self._kept),
                "asked": self._asked,
            }
        )

    def _tell_the_end(self, end: bytes) -> None:
        """Write it down, and tell who is attached. While it cannot be written down, only we know it: stay."""
        self._close_pipe()
        kept = self._write_end(end) or not self._leader
        if self._attached is not None:
            self._attached.say(ENDED, end)
        while not kept:
            self._wait(_AGAIN_MS)
            kept = self._write_end(end)
        give_up_at = time.monotonic() + _LINGER_S
        # Gone only once the other end has hung up: else what was not read there would be lost.
        while self._attached is not None and time.monotonic() < give_up_at:
            self._wait(_SLOW_MS)

    def _write_end(self, end: bytes) -> bool:
        """Whether nothing is left to be done."""
        if self._discards or (self._attached is None and not self._outlives):
            _remove(self._folder)
            return True
        try:
            _write(END, end, lasting=True)
        except FileNotFoundError:
            return True  # The folder is gone: nobody wants to know.
        except OSError:
            return False
        return True

    # Talking.

    def _wait(self, most_ms: int | None) -> None:
        """Wait until something happens, and deal with it."""
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        if self._door is not None:
            poll.register(self._door, select.POLLIN)
        # Who is attached but does not listen makes the command wait.
        if self._pipe >= 0 and (self._attached is None or len(self._attached.goes) < _PIECE):
            poll.register(self._pipe, select.POLLIN)
        for line in self._lines:
            wants = select.POLLIN | (select.POLLOUT if line.goes else 0)
            poll.register(line.connection, wants)
        ready = {number for number, _ in poll.poll(most_ms)}
        if self._wake in ready:
            os.read(self._wake, _PIECE)
        if self._pipe in ready:
            self._read()
        for line in self._lines:
            if line.connection.fileno() in ready:
                line.flush()
                for kind, body in line.heard():
                    try:
                        self._answer(line, kind, body)
                    except ValueError:
                        line.break_off()
        if self._door is not None and self._door.fileno() in ready:
            self._let_in(self._door)
        self._leave_broken()

    def _read(self) -> None:
        try:
            data = os.read(self._pipe, _PIECE)
        except BlockingIOError:
            return
        if not data:
            self._close_pipe()
            return
        self._written += len(data)
        self._kept += data
        if len(self._kept) > self._size + max(self._size, _PIECE):
            del self._kept[: len(self._kept) - self._size]
        if self._attached is not None:
            self._attached.say(OUTPUT, data)

    def _close_pipe(self) -> None:
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1

    def _let_in(self, door: socket.socket) -> None:
        try:
            connection, _ = door.accept()
        except OSError:
            return
        self._lines.append(Line(connection))

    def _answer(self, line: Line, kind: bytes, body: bytes) -> None:
        if kind == ATTACH:
            epoch, ticket = body.split(b".")
            self._attach(line, [int(epoch), int(ticket)])
        elif kind == LOOK:
            self._tell_state(line)
        elif kind == DISCARD:
            self._discards = self._asked = True
            self._end_all(0)
        elif line is self._attached and kind in {ASK, KILL}:
            self._asked = True
            self._end_all(self._grace_s if kind == ASK else 0)

    def _attach(self, line: Line, fence: list[int]) -> None:
        """Whoever shows a higher fence takes over; a lower one has nothing to say here any more (X-4)."""
        if fence < self._fence:
            line.say(TAKEN)
            line.break_off()
            return
        self._fence = fence
        self._adopted = True
        # Written down first: who is cut off then finds the reason.
        self._describe_again()
        if self._attached is not None and self._attached is not line:
            self._attached.say(TAKEN)
            self._attached.break_off()
        self._attached = line
        del self._kept[: max(0, len(self._kept) - self._size)]
        line.say(DROPPED, b"%d" % (self._written - len(self._kept)))
        for start in range(0, len(self._kept), _PIECE):
            line.say(OUTPUT, self._kept[start : start + _PIECE])
        if self._end is not None:
            line.say(ENDED, self._end)

    def _tell_state(self, line: Line) -> None:
        shown = binascii.b2a_base64(self._kept[-_SHOWN:], newline=False).decode()
        line.say(STATE, _said({"written": self._written, "output": shown}))

    def _leave_broken(self) -> None:
        for line in self._lines:
            if line.broken:
                line.connection.close()
                if line is self._attached:
                    self._attached = None
                    if not self._outlives and self._end is None:
                        self._end_all(self._grace_s)
        self._lines = [line for line in self._lines if not line.broken]


def _libc() -> "ctypes.CDLL":
    import ctypes  # noqa: PLC0415 - not on every system

    return ctypes.CDLL(None)


def _signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except OSError:
        return  # Nobody is there, or only who has become another user.


def _exists(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _bytes(text: str) -> bytes:
    return text.encode("latin-1")


def _said(what: dict[str, object]) -> bytes:
    return json.dumps(what).encode()


def _write(name: str, data: bytes, *, lasting: bool) -> None:
    """All of it or nothing, and if it shall last, also through a loss of power."""
    draft = f"{name}.draft"
    file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(file, view) :]
        if lasting:
            os.fsync(file)
    finally:
        os.close(file)
    os.rename(draft, name)
    if lasting:
        folder = os.open(".", os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _remove(folder: str) -> None:
    try:
        for name in os.listdir("."):
            os.unlink(name)
        os.rmdir(folder)
    except OSError:
        return  # Somebody else removes it, too.


def main() -> None:
    folder = sys.argv[1]
    lock, first, said = map(int, sys.argv[2:5])
    for inherited in (lock, first, said):
        os.set_inheritable(inherited, False)
    os.chdir(folder)
    with os.fdopen(said, "rb") as file:
        task = json.loads(file.read())
    keeper = Keeper(task, folder, socket.socket(fileno=first))
    try:
        keeper.keep()
    except Exception as error:  # noqa: BLE001 - whatever it is, the command must not go on alone
        keeper.abandon(repr(error))
    # Nothing is left to be tidied up.
    os._exit(0)


if __name__ == "__main__":
    main()
