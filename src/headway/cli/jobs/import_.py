"""`headway jobs import`: jobs from a file of Headway, OpenClaw or cron."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from headway.cli.exits import EXIT_CODES, REFUSED, errors_told
from headway.cli.jobs.options import COMMAND_AGENT
from headway.cli.options import AsJson, ServerUrl, StoreInstead, TokenText, place_of
from headway.cli.printing import print_all

if TYPE_CHECKING:
    from headway.cli.options import Place
    from headway.model.time import Instant
    from headway.wire.jobs import ImportAnswer

IMPORT_EXIT_CODES = f"{EXIT_CODES} It is also 2 if something was left out; the rest was taken."
_STDIN = "-"


class Problem(NamedTuple):
    """Something that a person should look at."""

    where: str
    why: str
    taken: bool

    def __str__(self) -> str:
        return f"{'note' if self.taken else 'left out'}: {self.where}: {self.why}"


class Read(NamedTuple):
    """What a file says: the names of its jobs, and what needs an eye."""

    names: list[str]
    problems: list[Problem]


def import_jobs(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file; - for the standard input.")],
    *,
    store: StoreInstead = None,
    server: ServerUrl = None,
    token: TokenText = None,
    crontab: Annotated[
        bool, typer.Option("--crontab", help="It is a crontab: each line becomes a command.")
    ] = False,
    user_column: Annotated[
        bool, typer.Option("--user-column", help="With --crontab: as /etc/crontab, with users.")
    ] = False,
    agent: Annotated[
        str | None,
        typer.Option(help="For jobs that name none; the one that runs commands (--crontab)."),
    ] = None,
    zone: Annotated[
        str | None,
        typer.Option(
            "--tz", metavar="ZONE", help="For jobs that name none (HEADWAY_TZ or UTC unless set)."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be taken, and change nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Import jobs: what `headway jobs export` prints, the jobs.json of OpenClaw, or a crontab.

    A job whose id or name is taken replaces the one that has it, so a file can
    be imported again. What cannot be taken over is reported, line by line.

    \\b
    headway jobs import jobs.json
    crontab -l | headway jobs import - --crontab --tz Europe/Paris --dry-run
    """
    from headway.wiring import run

    with errors_told():
        text = _text(file)
        if crontab and agent is None:
            agent = COMMAND_AGENT
        read = _read(text, agent, zone, crontab=crontab, user_column=user_column)
        loaded = None
        if not dry_run and read.names:
            place = place_of(server, token, store)
            loaded = run(_load(place, text, agent, zone, crontab=crontab, user_column=user_column))
    _tell(read, loaded, as_json=as_json)
    if not all(problem.taken for problem in read.problems):
        raise typer.Exit(REFUSED)


def _text(file: str) -> str:
    from headway.model.errors import InvalidInput

    try:
        if file == _STDIN:
            return sys.stdin.read()
        return Path(file).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeError) as wrong:
        raise InvalidInput("FILE", file, f"a file that can be read ({wrong})") from None


def _read(
    text: str, agent: str | None, zone: str | None, *, crontab: bool, user_column: bool
) -> Read:
    """What the file says, without touching any store."""
    from headway.cli.opening import wall_now, zone_or_default
    from headway.model.errors import InvalidInput

    now = wall_now()
    zone = zone_or_default(zone)
    if not crontab:
        if user_column:
            raise InvalidInput("--user-column", "given", "given with --crontab")
        return _read_json(text, agent, zone, now)
    from headway.core.crontab import read_crontab

    read = read_crontab(text, agent or "", now, zone, user_column)
    return Read(
        [f"{fields['agent']}/{fields['name']}" for fields in read.jobs],
        [
            Problem(f"line {problem.line}, {problem.text}", problem.why, problem.taken)
            for problem in read.problems
        ],
    )


def _read_json(text: str, agent: str | None, zone: str, now: "Instant") -> Read:
    from headway.core.job_files import read_jobs
    from headway.runtime.ids import new_job_id

    read = read_jobs(text, now, zone, new_job_id, agent)
    return Read(
        [f"{job.agent}/{job.name}" for job in read.jobs],
        [Problem(problem.path, problem.why, problem.taken) for problem in read.problems],
    )


async def _load(
    place: "Place",
    text: str,
    agent: str | None,
    zone: str | None,
    *,
    crontab: bool,
    user_column: bool,
) -> "ImportAnswer":
    from headway.cli.jobs.boards import jobs_changed

    async with jobs_changed(place, zone) as jobs:
        return await jobs.load(text, agent, crontab=crontab, user_column=user_column)


def _tell(read: Read, loaded: "ImportAnswer | None", *, as_json: bool) -> None:
    from headway.cli.answers import as_json as json_of
    from headway.cli.answers import one_line

    if as_json:
        told: dict[str, object] = {"would": read.names}
        if loaded is not None:
            told = {"added": loaded.added, "changed": loaded.changed}
        problems = [problem._asdict() for problem in read.problems]
        print_all(json_of({**told, "problems": problems}))
        return
    lines = [f"would take {one_line(name)}" for name in read.names]
    if loaded is not None:
        lines = [
            f"{verb} {job.agent_id}/{one_line(job.name)} ({job.id})"
            for verb, jobs in (("added", loaded.added), ("replaced", loaded.changed))
            for job in jobs
        ]
    print_all("\n".join(lines or ["no job can be taken from it"]))
    for problem in read.problems:
        typer.echo(one_line(str(problem)), err=True)
