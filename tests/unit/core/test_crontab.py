"""A crontab becomes jobs that do what they did under cron, and what cannot is reported with its line (C-12)."""

import pytest

from headway.core.crontab import Crontab, Problem, read_crontab
from headway.core.jobs import new_job
from headway.model.job import Job
from headway.model.payload import Execute
from headway.model.run import JobId
from headway.model.schedule import Cron, Every
from headway.model.time import DAY, MINUTE
from headway.model.words import Misfire, Overlap

NOW = 1_780_000_000_000_000
PARIS = "Europe/Paris"


def read(text: str, user_column: bool = False) -> Crontab:
    return read_crontab(text, "ops", NOW, PARIS, user_column)


def jobs(text: str, user_column: bool = False) -> list[Job]:
    table = read(text, user_column)
    return [
        new_job(JobId(f"j{n}"), fields, NOW, "Asia/Tokyo") for n, fields in enumerate(table.jobs)
    ]


def only(text: str, user_column: bool = False) -> Job:
    (job,) = jobs(text, user_column)
    return job


def command(text: str) -> Execute:
    payload = only(text).payload
    assert isinstance(payload, Execute)
    return payload


def problem(text: str) -> Problem:
    (found,) = read(text).problems
    return found


def test_a_line_becomes_a_job_that_does_what_cron_did() -> None:
    job = only("*/5 9-17 * * mon-fri  /usr/local/bin/poll --all > /dev/null 2>&1\n")
    assert job == Job(
        id=JobId("j0"),
        name="poll 817e",
        agent="ops",  # type: ignore[arg-type]
        schedule=Cron("*/5 9-17 * * mon-fri", PARIS),
        payload=Execute(("/bin/sh", "-c", "/usr/local/bin/poll --all > /dev/null 2>&1")),
        created_at=NOW,
        timeout=DAY,
        retries=0,
        overlap=Overlap.ALLOW,
        misfire=Misfire.SKIP,
    )


@pytest.mark.parametrize(
    ("line", "expression"),
    [
        ("0 3 * * * x", "0 3 * * *"),
        ("  0\t3  * *\t* x", "0 3 * * *"),
        ("@daily x", "0 0 * * *"),
        ("@hourly x", "0 * * * *"),
        ("@Weekly x", "0 0 * * 0"),
        ("-*/15 * * * * x", "*/15 * * * *"),
        ("0 0 1,15 * 7 x", "0 0 1,15 * 7"),
    ],
)
def test_times_in_every_form(line: str, expression: str) -> None:
    assert only(line).schedule == Cron(expression, PARIS)


def test_every_so_often() -> None:
    assert only("@every 10m x").schedule == Every(10 * MINUTE, NOW + 10 * MINUTE, PARIS)


def test_a_zone_holds_for_the_lines_below_it() -> None:
    table = """
0 1 * * * a
CRON_TZ=America/Sao_Paulo
0 2 * * * b
TZ=Asia/Tokyo
0 3 * * * c
CRON_TZ = "Asia/Kolkata"
0 4 * * * d
CRON_TZ=
0 5 * * * e
"""
    zones = [job.schedule.zone for job in jobs(table)]
    assert zones == [PARIS, "America/Sao_Paulo", "America/Sao_Paulo", "Asia/Kolkata", PARIS]
    assert read(table).problems == ()


def test_the_zone_of_the_commands_is_that_of_the_times_where_no_other_is_named() -> None:
    job = only("TZ=:Asia/Tokyo\n0 3 * * * date")
    assert job.schedule.zone == "Asia/Tokyo"
    assert isinstance(job.payload, Execute)
    assert dict(job.payload.environment) == {"TZ": ":Asia/Tokyo"}


def test_jobs_below_an_unknown_zone_are_not_guessed_at() -> None:
    table = read("CRON_TZ=Europe/Pariss\n0 1 * * * a\nCRON_TZ=UTC\n0 2 * * * b\n")
    assert [job["name"] for job in table.jobs] == ["b 7a5b"]
    first, second = table.problems
    assert (first.line, second.line, second.text) == (1, 2, "0 1 * * * a")
    assert "'Europe/Paris'" in first.why
    assert second.why == "its time zone is not known"


def test_variables_go_into_the_environment_of_the_lines_below_them() -> None:
    table = """
PATH=/usr/local/bin:/usr/bin
0 1 * * * a
GREETING = "hello  world"
'NAME' = 'Bob'
PATH=$HOME/bin
0 2 * * * b
"""
    payloads = [job.payload for job in jobs(table)]
    assert [dict(payload.environment) for payload in payloads if isinstance(payload, Execute)] == [
        {"PATH": "/usr/local/bin:/usr/bin"},
        {"PATH": "$HOME/bin", "GREETING": "hello  world", "NAME": "Bob"},
    ]


def test_the_shell_and_the_folder_are_those_that_are_named() -> None:
    payload = command("SHELL=/bin/bash\nHOME=/srv/app\n0 1 * * * make all\n")
    assert payload.argv == ("/bin/bash", "-c", "make all")
    assert payload.folder == "/srv/app"


def test_mail_is_reported_as_not_taken_over() -> None:
    found = problem("MAILTO=ops@example.com\n0 1 * * * a")
    assert (found.line, found.text, found.taken) == (1, "MAILTO=ops@example.com", False)
    assert "MAILTO" in found.why
    assert read('MAILTO=""\n0 1 * * * a').problems == ()
    assert not command("MAILTO=ops\n0 1 * * * a").environment


def test_a_random_delay_becomes_a_stagger() -> None:
    assert only("RANDOM_DELAY=30\n0 1 * * * a").stagger == 30 * MINUTE
    assert only("RANDOM_DELAY=00\n0 1 * * * a").stagger == 0
    assert problem("RANDOM_DELAY=soon").line == 1


@pytest.mark.parametrize(
    ("line", "run", "stdin"),
    [
        (r"0 1 * * * date +\%F", "date +%F", ""),
        (r"0 1 * * * mail bob%Hi%there", "mail bob", "Hi\nthere\n"),
        (r"0 1 * * * mail bob%100\% sure%", "mail bob", "100% sure\n"),
        (r"0 1 * * * echo \%a%b\%c", "echo %a", "b%c\n"),
        (r"0 1 * * * x %", "x", ""),
        (r"0 1 * * * grep '\.' f", r"grep '\.' f", ""),
    ],
)
def test_percent_signs_begin_the_input_and_its_lines(line: str, run: str, stdin: str) -> None:
    payload = command(line)
    assert (payload.argv[2], payload.stdin) == (run, stdin)


@pytest.mark.parametrize(
    ("comment", "name"),
    [
        ("# Nightly backup", "Nightly backup"),
        ("#Nightly   backup:", "Nightly backup"),
        ("### --- Nightly backup --- ###", "Nightly backup"),
        ("# Sauvegarde d'été", "Sauvegarde d'été"),
        ("# 0 4 * * * /old/thing", "x 64e1"),
        ("#@daily /old/thing", "x 64e1"),
        ("#PATH=/old/path", "x 64e1"),
        ("# m h  dom mon dow   command", "x 64e1"),
        ("# ------------------", "x 64e1"),
        ("# 42", "x 64e1"),
        ("#", "x 64e1"),
        ("# " + "very long " * 20, "x 64e1"),
        ("", "x 64e1"),
    ],
)
def test_a_comment_right_above_is_the_name_if_it_reads_like_one(comment: str, name: str) -> None:
    assert only(f"{comment}\n0 3 * * * /opt/bin/x --y").name == name


def test_a_comment_further_above_is_not_the_name() -> None:
    assert only("# Backups\n\n0 3 * * * x").name == "x 269d"
    assert only("# Backups\nA=b\n0 3 * * * x").name == "x 269d"


def test_names_are_unique() -> None:
    table = "# Backup\n0 3 * * * a\n# Backup\n0 4 * * * b\n0 5 * * * b\n0 6 * * * b\n"
    names = [job.name for job in jobs(table)]
    assert names == ["Backup", "Backup (2)", "b 7a5b", "b 7a5b (2)"]


def test_the_user_column_is_not_part_of_the_command() -> None:
    line = "17 *\t* * *\troot\tcd / && run-parts /etc/cron.hourly"
    job = only(line, user_column=True)
    assert isinstance(job.payload, Execute)
    assert job.payload.argv[2] == "cd / && run-parts /etc/cron.hourly"
    (found,) = read(line, user_column=True).problems
    assert found.taken
    assert "not as root" in found.why


def test_a_user_column_that_was_not_announced_is_noticed() -> None:
    found = problem("17 * * * * root run-parts /etc/cron.hourly")
    assert found.taken
    assert "user column" in found.why


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("@reboot /start", "@reboot"),
        ("@sometimes x", "@hourly"),
        ("99 * * * * x", "minute"),
        ("*/0 * * * * x", "cron"),
        ("0 0 31 2 * x", "cron"),
        ("* * * * *", "no command"),
        ("@daily", "no command"),
        ("* * * * * %only input", "no command"),
        ("0 3 * *", "five times and a command"),
        ("hello", "five times and a command"),
        ("'A B'=c", "letters, digits and _"),
        ("0 3 * * * a\0b", "text"),
    ],
)
def test_a_line_that_cannot_be_taken_over_is_reported_and_the_rest_is_read(
    line: str, why: str
) -> None:
    table = read(f"# x\n{line}\n0 4 * * * fine\n")
    (found,) = table.problems
    assert (found.line, found.text, found.taken) == (2, line, False)
    assert why in found.why
    assert [fields["name"] for fields in table.jobs] == ["fine f210"]


def test_a_file_of_another_system_is_read_too() -> None:
    assert only("\r\n# Backup\r\n0 3 * * * x --y\r\n").payload == Execute(
        ("/bin/sh", "-c", "x --y")
    )
    assert read("").jobs == ()


def test_c12_an_edited_crontab_makes_the_same_jobs() -> None:
    """Names do not depend on lines: what is read again replaces what was read before."""
    lines = "0 3 * * * /opt/backup --all\n0 4 * * * /opt/backup --some\n"
    first = [fields["name"] for fields in read(lines).jobs]
    again = [fields["name"] for fields in read(f"# edited\n\nA=b\n{lines}").jobs]
    assert first == again
    assert len(set(first)) == 2
