"""A crontab, read into the fields of jobs, with a report of what could not be taken over (C-12).

The jobs do what they did under cron: each command is read by a shell, is not tried again after an error, is not
made up for after a downtime, and may run beside an earlier one that takes long. As Headway bounds every attempt,
they get a day each.
"""

import re
from collections.abc import Mapping
from hashlib import blake2b

from headway.core.jobs import new_job
from headway.core.schedule import zone_name
from headway.model.errors import InvalidInput
from headway.model.payload import Execute
from headway.model.run import JobId
from headway.model.time import Instant
from headway.model.value import Value

_SHELL = "/bin/sh"
_LIKE_CRON: Mapping[str, object] = {
    "retries": 0,
    "misfire": "skip",
    "overlap": "allow",
    "timeout": "1d",
}
_MAIL = frozenset({"MAILTO", "MAILFROM", "CONTENT_TYPE", "CONTENT_TRANSFER_ENCODING"})
_LONGEST_NAME = 80

_VARIABLE = re.compile(
    r"""(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>[A-Za-z_]\w*))\s*=\s*(?P<value>.*)""",
    re.ASCII,
)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_ENTRY = re.compile(
    r"-?(?P<when>@every\s+\S+|@\w+|(?:\S+\s+){4}\S+)(?:\s+(?P<command>.*))?", re.ASCII
)
_COMMENTED_OUT = re.compile(r"@\w+\s|[\d*][\d*/,~-]*(?:\s+[\w*/,~-]+){4}\s", re.ASCII)
_PERCENT = re.compile(r"\\%|%")
_STDIN = re.compile(r"(?<!\\)%")
_LETTERS = re.compile(r"[^\W\d_]{3}")
_FRAME = " \t#-=*_~:."


class Problem(Value, frozen=True):
    """A line of a crontab that was not taken over as it stands."""

    line: int
    text: str
    why: str
    taken: bool = False
    """Whether it became a job all the same."""


class Crontab(Value, frozen=True):
    """What was read: the fields of each job, as `new_job` takes them, and what needs a person's eye."""

    jobs: tuple[Mapping[str, object], ...]
    problems: tuple[Problem, ...]


def read_crontab(
    text: str, agent: str, now: Instant, zone: str, user_column: bool = False
) -> Crontab:
    """Read a crontab. Times are in `zone` until a line names another; `agent` must be one that runs commands.

    With `user_column` the word after the times is the user, as in /etc/crontab.
    """
    reading = _Reading(agent, now, zone_name(zone), user_column)
    for line in text.split("\n"):
        reading.take(line.strip())
    return Crontab(tuple(reading.jobs), tuple(reading.problems))


class _Reading:
    """How far a crontab has been read: what its lines so far mean for those that follow."""

    def __init__(self, agent: str, now: Instant, zone: str, user_column: bool) -> None:
        self.jobs: list[Mapping[str, object]] = []
        self.problems: list[Problem] = []
        self._agent = agent
        self._now = now
        self._default_zone = zone
        self._zones: dict[str, str | None] = {}
        self._user_column = user_column
        self._environment: dict[str, str] = {}
        self._delay = "0"
        self._names: set[str] = set()
        self._comment = ""
        self._number = 0
        self._line = ""

    def take(self, line: str) -> None:
        self._number += 1
        self._line = line
        comment, self._comment = self._comment, ""
        if line.startswith("#"):
            self._comment = _title(line)
        elif found := _VARIABLE.fullmatch(line):
            name = found["double"] or found["single"] or found["bare"] or ""
            self._variable(name, _unquoted(found["value"]))
        elif line:
            self._entry(comment)

    def _variable(self, name: str, value: str) -> None:
        if name in {"CRON_TZ", "TZ"}:
            self._zones[name] = self._zone(name, value)
        if not _NAME.fullmatch(name):
            self._report("a variable must have a name of letters, digits and _")
        elif name in _MAIL:
            if value:
                self._report(f"no mail is sent: {name} is not taken over; see `deliver`")
        elif name == "RANDOM_DELAY":
            if value.isdecimal():
                self._delay = f"{value}m" if value.strip("0") else "0"
            else:
                self._report("a delay must be a number of minutes")
        elif name != "CRON_TZ":
            self._environment[name] = value

    def _zone(self, name: str, value: str) -> str | None:
        """The zone that the times of the following lines are in; None if nobody knows it."""
        if not value:
            return self._default_zone
        try:
            return zone_name(value.removeprefix(":"), name)
        except InvalidInput as error:
            self._report(f"{name} must be {error.allowed}; jobs below it are left out")
            return None

    def _entry(self, comment: str) -> None:
        found = _ENTRY.fullmatch(self._line)
        if found is None:
            self._report("this is neither five times and a command, nor NAME=value")
            return
        command, user = found["command"] or "", ""
        if self._user_column:
            user, command = (*command.split(None, 1), "", "")[:2]
        command, stdin = _split_percent(command.strip())
        if not command:
            self._report("there is no command after the times" + (" and the user" if user else ""))
            return
        zone = self._zones.get("CRON_TZ", self._zones.get("TZ", self._default_zone))
        if zone is None:
            self._report("its time zone is not known")
            return
        environment = tuple(self._environment.items())
        shell = self._environment.get("SHELL") or _SHELL
        fields: dict[str, object] = {
            "name": self._name(comment, command),
            "agent": self._agent,
            "cron": found["when"],
            "tz": zone,
            "command": Execute(
                (shell, "-c", command), self._environment.get("HOME", ""), environment, stdin
            ),
            "stagger": self._delay,
            **_LIKE_CRON,
        }
        try:
            job = new_job(JobId("crontab"), fields, self._now, zone)
        except InvalidInput as error:
            self._report(f"{error.field} must be {error.allowed}")
            return
        self._names.add(job.name)
        self.jobs.append(fields)
        if user:
            self._report(f"runs as the user that Headway runs as, not as {user}", taken=True)
        elif command.split(maxsplit=1)[0] == "root":
            why = "'root' is taken for the command; if it is the user, read the file with its user column"
            self._report(why, taken=True)

    def _name(self, comment: str, command: str) -> str:
        """The comment right above it, if that reads like a name; else the program and a mark of the command.

        It does not depend on the line: a crontab that was edited and is read again makes the same jobs.
        """
        name = comment
        if not name:
            program = command.split(maxsplit=1)[0].strip("\"'()").rpartition("/")[2] or "command"
            mark = blake2b(" ".join(command.split()).encode(errors="surrogatepass"), digest_size=2)
            name = f"{program[:_LONGEST_NAME]} {mark.hexdigest()}"
        numbered = (name, *(f"{name} ({number})" for number in range(2, len(self._names) + 3)))
        return next(free for free in numbered if free not in self._names)

    def _report(self, why: str, taken: bool = False) -> None:
        self.problems.append(Problem(self._number, self._line, why, taken))


def _title(comment: str) -> str:
    """What a comment calls the job below it; empty if it is a job that was commented out, or decoration."""
    title = comment.strip(_FRAME)
    bare = comment.lstrip("# \t")
    if len(title) > _LONGEST_NAME or not _LETTERS.search(title):
        return ""
    if _COMMENTED_OUT.match(bare) or _VARIABLE.fullmatch(bare) or "dow" in title.split():
        return ""
    return " ".join(title.split())


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value


def _split_percent(command: str) -> tuple[str, str]:
    """A command and its standard input: what follows the first percent sign; each further one ends a line."""
    head, *rest = _STDIN.split(command, maxsplit=1)
    stdin = _PERCENT.sub(lambda sign: "%" if len(sign[0]) > 1 else "\n", rest[0]) if rest else ""
    if stdin and not stdin.endswith("\n"):
        stdin += "\n"
    return head.replace("\\%", "%").strip(), stdin
