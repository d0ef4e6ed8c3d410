"""`headway jobs`: adding, changing and watching jobs from a shell, on a store that others may be using."""

import io
import json
import re
import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import pytest

from headway.cli.printing import print_all
from tests.postgres import fresh_url
from tests.unit.cli.calling import NO_SERVER, Shell, fields_of, part, shell, sqlite_shell
from tests.unit.cli.running import headway
from tests.unit.cli.working import wait_until, worker

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["shell"]

NEW_YORK = ("--tz", "America/New_York")


class TestNext:
    """`next` needs no store: people check their expression with it."""

    def test_c2_an_expression_is_shown_on_the_wall_clock_of_its_zone(self) -> None:
        told = Shell("").json(
            "jobs", "next", "0 9 * * 1-5", "--tz", "America/Sao_Paulo", "-n", "6",
            "--after", "2026-11-19 10:00",
        )  # fmt: skip
        assert [part(firing, "local") for firing in firings(told)] == [
            f"2026-11-{day}T09:00:00-03:00" for day in (20, 23, 24, 25, 26, 27)
        ]
        assert part(told, "firings", 0, "at") == "2026-11-20T12:00:00.000Z"
        assert part(told, "schedule") == "0 9 * * 1-5 (America/Sao_Paulo)"

    def test_times_are_shown_with_their_zone_and_how_far_away_they_are(self) -> None:
        (line,) = Shell("").ok("jobs", "next", "in 20 minutes", "--tz", "Asia/Tokyo").lines
        assert re.fullmatch(r"\w{3} \d+ \w{3} \d\d:\d\d(:\d\d)? Asia/Tokyo \(in 20 minutes\)", line)

    def test_the_zone_is_that_of_the_environment_unless_it_is_named(self) -> None:
        (line,) = Shell("").ok("jobs", "next", "tomorrow 9am", HEADWAY_TZ="Asia/Tokyo").lines
        assert " 09:00 Asia/Tokyo (" in line
        (line,) = Shell("").ok("jobs", "next", "tomorrow 9am").lines
        assert " 09:00 UTC (" in line

    @pytest.mark.parametrize(
        ("expression", "count"),
        [("every 10m", 5), ("EVERY 1h30m", 5), ("@daily", 5), ("@every 10m", 5), ("18:00", 1)],
    )
    def test_every_form_of_a_schedule_can_be_tried(self, expression: str, count: int) -> None:
        assert len(Shell("").ok("jobs", "next", expression).lines) == count

    @pytest.mark.parametrize(
        ("expression", "zone", "after", "local", "note"),
        [
            (
                "30 2 * * *",
                "America/New_York",
                "2027-03-13 12:00",
                "2027-03-14T03:00:00-04:00",
                "02:30 does not exist that day: the clocks go from 02:00 to 03:00",
            ),
            (
                "0 3 * * *",
                "America/New_York",
                "2027-03-13 12:00",
                "2027-03-14T03:00:00-04:00",
                "the clocks go from 02:00 to 03:00 at that moment",
            ),
            (
                "30 1 * * *",
                "America/New_York",
                "2027-11-06 12:00",
                "2027-11-07T01:30:00-04:00",
                "01:30 comes twice that day: it fires the first time only",
            ),
            (
                "30 * * * *",
                "America/New_York",
                "2027-11-07T05:30Z",
                "2027-11-07T01:30:00-05:00",
                "01:30 comes twice that day: this is the second time",
            ),
            (
                "15 2 * * *",
                "Australia/Lord_Howe",
                "2027-10-02 12:00",
                "2027-10-03T02:30:00+11:00",
                "02:15 does not exist that day: the clocks go from 02:00 to 02:30",
            ),
            (
                "10 0 * * *",
                "Africa/Cairo",
                "2027-04-29 12:00",
                "2027-04-30T01:00:00+03:00",
                "00:10 does not exist that day: the clocks go from 00:00 to 01:00",
            ),
            ("30 2 * * *", "America/New_York", "2027-03-14 12:00", "2027-03-15T02:30:00-04:00", ""),
            (
                "2027-11-07 01:30",
                "America/New_York",
                "2027-11-06 12:00",
                "2027-11-07T01:30:00-04:00",
                "01:30 comes twice that day: this is the first time",
            ),
        ],
    )
    def test_c4_what_is_odd_about_a_wall_time_is_said(
        self, expression: str, zone: str, after: str, local: str, note: str
    ) -> None:
        asked = ("jobs", "next", expression, "--tz", zone, "--after", after, "-n", "1")
        (firing,) = firings(Shell("").json(*asked))
        assert (part(firing, "local"), part(firing, "note")) == (local, note)
        (line,) = Shell("").ok(*asked).lines
        assert line.endswith(f"; {note}" if note else ")")

    @pytest.mark.parametrize(
        ("expression", "complaint"),
        [
            ("*/0 * * * *", "minute"),
            ("99 * * * *", "minute is 0-59"),
            ("0 24 * * *", "hour is 0-23"),
            ("0 0 31 2 *", "never does"),
            ("every 500x", "a duration such as"),
            ("every 0s", "longer than 0"),
            ("0 9 * *", "five"),
            ("@reboot", "no @reboot"),
            ("2020-01-01 09:00", "in the future"),
            ("tomorrow 9", "with am, pm or minutes"),
            ("nonsense", "no server answers"),
        ],
    )
    def test_c3_a_bad_expression_is_refused_with_what_to_do(
        self, expression: str, complaint: str
    ) -> None:
        called = Shell("")("jobs", "next", expression)
        assert (called.code, called.out) == (2, "")
        assert called.err.startswith("headway: expression: ")
        assert complaint in called.err

    def test_an_unknown_zone_is_refused_with_the_one_that_was_meant(self) -> None:
        err = Shell("").refused("jobs", "next", "@daily", "--tz", "Sao_Paulo")
        assert "--tz" in err
        assert "America/Sao_Paulo" in err

    def test_a_job_is_found_in_the_store_and_shown_in_its_own_zone_or_another(
        self, shell: Shell
    ) -> None:
        add(shell, "brief", "--cron", "0 9 * * *", "--tz", "America/Sao_Paulo")
        assert " 09:00 America/Sao_Paulo (" in shell.ok("jobs", "next", "support/brief").lines[0]
        assert " 21:00 Asia/Tokyo (" in shell.ok("jobs", "next", "brief", "--tz", "Asia/Tokyo").out
        odd = shell.ok("jobs", "next", "brief", "--after", "2027-01-01 12:00", "-n", "1")
        assert odd.out.startswith("Sat 2 Jan 2027 09:00 America/Sao_Paulo")

    def test_c8_the_stagger_of_a_job_is_in_it_and_hides_no_oddity(self, shell: Shell) -> None:
        add(shell, "gap", "--cron", "30 2 * * *", *NEW_YORK, "--stagger", "10m")
        (firing,) = firings(
            shell.json("jobs", "next", "gap", "--after", "2027-03-13 12:00", "-n", "1")
        )
        assert re.match(r"2027-03-14T03:0\d:", str(part(firing, "local")))
        assert "02:30 does not exist" in str(part(firing, "note"))

    def test_a_paused_job_does_not_fire(self, shell: Shell) -> None:
        add(shell, "later", "--every", "1h", "--disabled")
        assert shell.ok("jobs", "next", "later").out == "it does not fire any more\n"

    def test_what_is_neither_expression_nor_job_is_refused(self, shell: Shell) -> None:
        add(shell, "brief")
        err = shell.refused("jobs", "next", "tomorow 9am")
        assert "there is none called so" in err
        assert "tomorrow 9am" in err


class TestAdd:
    def test_the_new_job_is_shown_with_its_next_three_firings(self, shell: Shell) -> None:
        called = shell.ok(
            "jobs", "add", "brief", "--agent", "support", "--text", "What is\nnew?",
            "--cron", "0 9 * * 1-5", "--tz", "America/Sao_Paulo",
        )  # fmt: skip
        fields = fields_of(called)
        assert fields["job"] == "support/brief"
        assert fields["schedule"] == "0 9 * * 1-5 (America/Sao_Paulo)"
        assert fields["asks"] == "What is new?"
        assert fields["state"] == "enabled"
        assert called.out.count(" 09:00 America/Sao_Paulo (in ") == 3

    def test_c1_every_field_can_be_said(self, shell: Shell) -> None:
        job = shell.json(
            "jobs", "add", "all", "--agent", "support", "--text", "x", "--every", "1h30m",
            "--tz", "Europe/Paris", "--stagger", "5m", "--misfire", "all", "--misfire-window", "2d",
            "--deliver", "telegram:42:7", "--gate-command", "test -e mail", "--session", "job",
            "--lane", "slow", "--priority", "3", "--timeout", "20m", "--retries", "0",
            "--max-attempts", "2", "--overlap", "skip", "--delete-after-run", "--disabled",
        )  # fmt: skip
        assert isinstance(job, dict)
        assert job["schedule"]["everyMs"] == 5_400_000
        assert job["schedule"]["tz"] == "Europe/Paris"
        assert job["deliver"] == {"channel": "telegram", "to": "42", "thread": "7"}
        assert job["gate"] == {"command": ["test", "-e", "mail"]}
        assert job["enabled"] is False
        assert {key: job[key] for key in ("session", "lane", "priority", "retries")} == {
            "session": "job",
            "lane": "slow",
            "priority": 3,
            "retries": 0,
        }
        assert (job["timeoutMs"], job["staggerMs"]) == (1_200_000, 300_000)
        assert (job["misfire"], job["misfireWindowMs"]) == ("all", 172_800_000)
        assert (job["overlap"], job["maxAttempts"], job["deleteAfterRun"]) == ("skip", 2, True)
        assert job["state"]["nextRunAt"] is None
        fields = fields_of(shell.ok("jobs", "show", "all"))
        assert fields["gate"] == "command test -e mail"
        assert fields["deliver"] == "telegram:42:7"
        assert fields["misfire"] == "all, within 2d"
        assert fields["state"] == "paused"

    @pytest.mark.parametrize(
        ("written", "payload"),
        [
            ("backup --all 'my files'", {"argv": ["backup", "--all", "my files"]}),
            ('["sh", "-c", "a | b"]', {"argv": ["sh", "-c", "a | b"]}),
            (
                '{"argv": ["x"], "folder": "/srv", "environment": {"A": "1"}}',
                {"argv": ["x"], "folder": "/srv", "environment": {"A": "1"}},
            ),
        ],
    )
    def test_a_command_is_for_the_agent_that_runs_commands(
        self, shell: Shell, written: str, payload: dict[str, object]
    ) -> None:
        job = shell.json("jobs", "add", "backup", "--every", "6h", "--command", written)
        assert part(job, "agentId") == "command"
        assert part(job, "payload") == {"kind": "command", **payload}

    @pytest.mark.parametrize(
        ("written", "route"),
        [
            ("log", {"channel": "log"}),
            ("telegram:42", {"channel": "telegram", "to": "42"}),
            (
                "webhook:https://example.org:8443/in",
                {"channel": "webhook", "to": "https://example.org:8443/in"},
            ),
            (
                '{"channel": "matrix", "to": "!room:example.org"}',
                {"channel": "matrix", "to": "!room:example.org"},
            ),
        ],
    )
    def test_the_reply_goes_where_it_says(
        self, shell: Shell, written: str, route: dict[str, str]
    ) -> None:
        assert part(add(shell, "brief", "--deliver", written), "deliver") == route

    def test_a_function_of_the_program_may_be_asked_and_may_be_the_gate(self, shell: Shell) -> None:
        job = shell.json(
            "jobs", "add", "mail", "--agent", "support", "--every", "10m",
            "--function", "read_mail", "--gate-function", "has_mail",
        )  # fmt: skip
        assert part(job, "payload") == {"kind": "function", "function": "read_mail"}
        assert part(job, "gate") == {"function": "has_mail"}

    def test_an_instant_in_the_words_of_people_is_kept_and_shown_with_its_zone(
        self, shell: Shell
    ) -> None:
        called = shell.ok(
            "jobs", "add", "tea", "--agent", "support", "--text", "Tea!",
            "--at", "tomorrow 9am", "--tz", "Asia/Tokyo",
        )  # fmt: skip
        fields = fields_of(called)
        assert re.fullmatch(r"at \d{4}-\d\d-\d\d 09:00 \(Asia/Tokyo\)", fields["schedule"])
        assert fields["afterwards"] == "deleted"

    @pytest.mark.parametrize(
        ("arguments", "field"),
        [
            (("--text", "x"), "schedule"),
            (("--text", "x", "--every", "1h", "--cron", "@daily"), "every"),
            (("--every", "1h"), "text"),
            (("--every", "1h", "--text", "x", "--command", "y"), "command"),
            (("--every", "1h", "--text", " "), "text"),
            (("--every", "500x", "--text", "x"), "every"),
            (("--cron", "99 * * * *", "--text", "x"), "cron"),
            (("--at", "2020-01-01 09:00", "--text", "x"), "at"),
            (("--every", "1h", "--text", "x", "--tz", "Mars/Base"), "tz"),
            (("--every", "1h", "--text", "x", "--overlap", "sometimes"), "overlap"),
            (("--every", "1h", "--text", "x", "--misfire", "twice"), "misfire"),
            (("--every", "1h", "--text", "x", "--timeout", "0"), "timeout"),
            (("--every", "1h", "--text", "x", "--retries", "-1"), "retries"),
            (("--every", "1h", "--command", "a | b"), "command"),
            (("--every", "1h", "--command", "[1"), "--command"),
            (("--every", "1h", "--text", "x", "--deliver", "{"), "--deliver"),
            (("--every", "1h", "--text", "x", "--deliver", ":42"), "deliver.channel"),
            (
                ("--every", "1h", "--text", "x", "--gate-command", "a", "--gate-function", "b"),
                "gate",
            ),
        ],
    )
    def test_c3_c13_what_is_wrong_is_refused_naming_the_field(
        self, shell: Shell, arguments: tuple[str, ...], field: str
    ) -> None:
        add(shell, "other")
        err = shell.refused("jobs", "add", "brief", "--agent", "support", *arguments)
        assert err.startswith(f"headway: {field}: ")
        assert names(shell.json("jobs", "list")) == ["other"]

    def test_a_job_needs_an_agent_and_a_name_of_its_own(self, shell: Shell) -> None:
        asked = ("--every", "1h", "--text", "x")
        assert "agent" in shell.refused("jobs", "add", "brief", *asked)
        shell.ok("jobs", "add", "brief", "--agent", "support", *asked)
        err = shell.refused("jobs", "add", "brief", "--agent", "support", *asked)
        assert "name: 'brief'" in err
        shell.ok("jobs", "add", "brief", "--agent", "coder", *asked)

    def test_a_store_that_nobody_could_share_is_refused(self) -> None:
        memory = Shell("memory://")
        for command in (
            ("jobs", "list"),
            ("jobs", "add", "x", "--agent", "a", "--every", "1h", "--text", "t"),
        ):
            assert "--store" in memory.refused(*command)

    def test_o5_without_a_store_the_server_is_asked(self) -> None:
        called = Shell("")("jobs", "list")
        assert (called.code, called.out) == (3, "")
        assert called.err.startswith(f"headway: no server answers at {NO_SERVER}")
        assert called.err.endswith("or a store with --store or HEADWAY_STORE\n")
        assert "headway serve" in called.err

    def test_a_server_and_a_store_at_once_are_refused(self, shell: Shell) -> None:
        err = shell.refused("jobs", "list", "--store", shell.store, "--server", NO_SERVER)
        assert "--server" in err


class TestList:
    def test_what_is_shown_of_each_job(self, shell: Shell) -> None:
        add(shell, "brief", "--cron", "0 9 * * *", "--tz", "Asia/Tokyo")
        add(shell, "old", "--every", "1h", "--disabled")
        head, brief, old = shell.ok("jobs", "list").lines
        assert re.split(r"  +", head) == [
            "name",
            "agent",
            "schedule",
            "next run",
            "last",
            "failures",
            "state",
        ]
        cells = re.split(r"  +", brief)
        assert cells[:3] == ["brief", "support", "0 9 * * * (Asia/Tokyo)"]
        assert re.fullmatch(r"\w{3} \d+ \w{3} 09:00 Asia/Tokyo \(in .+\)", cells[3])
        assert cells[4:] == ["-", "0", "enabled"]
        assert re.split(r"  +", old)[3:] == ["-", "-", "0", "paused"]

    def test_times_can_be_shown_in_another_zone(self, shell: Shell) -> None:
        add(shell, "brief", "--cron", "0 9 * * *", "--tz", "Asia/Tokyo")
        assert " 00:00 UTC (" in shell.ok("jobs", "list", "--tz", "UTC").out
        assert "--tz" in shell.refused("jobs", "list", "--tz", "Nowhere")

    def test_pages_go_on_where_the_last_one_ended(self, shell: Shell) -> None:
        for name in ("a", "b", "c"):
            add(shell, name)
        first = shell.json("jobs", "list", "-n", "2")
        assert names(first) == ["a", "b"]
        cursor = str(part(first, "cursor"))
        rest = shell.json("jobs", "list", "-n", "2", "--cursor", cursor)
        assert (names(rest), part(rest, "cursor")) == (["c"], None)
        assert names(shell.json("jobs", "list", "-n", "2", "--all")) == ["a", "b", "c"]
        shown = shell("jobs", "list", "-n", "2")
        assert (shown.code, len(shown.lines)) == (0, 3)
        assert f"--cursor {quote(cursor)}" in shown.err

    def test_those_of_one_agent(self, shell: Shell) -> None:
        add(shell, "a")
        add(shell, "b", "--agent", "coder")
        assert names(shell.json("jobs", "list", "--agent", "coder")) == ["b"]

    def test_a_name_cannot_break_the_table_or_the_terminal(self, shell: Shell) -> None:
        add(shell, "two\nlines \x1b[31mred")
        lines = shell.ok("jobs", "list").lines
        assert len(lines) == 2
        assert lines[1].startswith("two lines  [31mred  ")

    def test_d8_reading_writes_nothing(self, tmp_path: Path) -> None:
        shell = sqlite_shell(tmp_path)
        for command in (("list",), ("show", "x"), ("log",), ("next", "x/y"), ("export",)):
            assert "no such file" in shell.refused("jobs", *command)
        assert list(tmp_path.iterdir()) == []


class TestNaming:
    def test_a_job_is_named_by_its_id_by_agent_and_name_or_by_its_name_alone(
        self, shell: Shell
    ) -> None:
        job_id = str(part(add(shell, "brief"), "id"))
        for named in (job_id, "support/brief", "brief"):
            assert part(shell.json("jobs", "show", named), "id") == job_id

    def test_a_name_that_several_have_is_refused_with_all_of_them(self, shell: Shell) -> None:
        add(shell, "brief")
        add(shell, "brief", "--agent", "coder")
        for command in ("show", "pause", "run", "rm"):
            err = shell.refused("jobs", command, "brief", "--json")
            assert "coder/brief, support/brief" in err
        assert len(names(shell.json("jobs", "list"))) == 2

    @pytest.mark.parametrize("command", ["show", "edit", "pause", "resume", "run", "rm", "log"])
    def test_a_job_that_is_not_there(self, shell: Shell, command: str) -> None:
        add(shell, "brief")
        more = ("--timeout", "5m") if command == "edit" else ()
        for named in ("brieff", "coder/brief", ""):
            assert "there is no job" in shell.refused("jobs", command, named, *more)


class TestChanging:
    def test_c2_c13_an_edit_changes_what_it_names_and_keeps_the_zone(self, shell: Shell) -> None:
        add(shell, "brief", "--cron", "0 9 * * *", "--tz", "Asia/Tokyo", "--timeout", "5m")
        job = shell.json("jobs", "edit", "brief", "--cron", "30 8 * * *", "--name", "early")
        assert part(job, "schedule") == {"kind": "cron", "expr": "30 8 * * *", "tz": "Asia/Tokyo"}
        assert part(job, "timeoutMs") == 300_000
        fields = fields_of(shell.ok("jobs", "edit", "early", "--tz", "Europe/Paris"))
        assert fields["schedule"] == "30 8 * * * (Europe/Paris)"
        assert " 08:30 Europe/Paris" in fields["next"]

    def test_an_option_can_be_set_back(self, shell: Shell) -> None:
        add(shell, "brief", "--deliver", "telegram:42", "--misfire-window", "2d", "--lane", "x")
        reset = ("--reset", "deliver", "--reset", "misfire-window")
        job = shell.json("jobs", "edit", "brief", *reset, "--lane", "slow")
        assert isinstance(job, dict)
        assert {"deliver", "misfireWindowMs"} & job.keys() == set()
        assert job["lane"] == "slow"

    @pytest.mark.parametrize(
        ("arguments", "complaint"),
        [
            ((), "at least one"),
            (("--reset", "delivery"), "did you mean 'deliver'"),
            (("--reset", "name"), "--reset"),
            (("--lane", "a", "--reset", "lane"), "--reset"),
            (("--every", "0s"), "every"),
            (("--name", "other"), "name: 'other'"),
        ],
    )
    def test_an_edit_that_cannot_be_changes_nothing(
        self, shell: Shell, arguments: tuple[str, ...], complaint: str
    ) -> None:
        before = add(shell, "brief")
        add(shell, "other")
        assert complaint in shell.refused("jobs", "edit", "support/brief", *arguments)
        assert shell.json("jobs", "show", "support/brief") == before

    def test_a_heartbeat_is_changed_by_its_own_command(self, shell: Shell) -> None:
        shell.ok("heartbeat", "set", "support")
        err = shell.refused("jobs", "edit", "support/heartbeat", "--every", "1h")
        assert "headway heartbeat set support" in err

    def test_c10_pause_and_resume(self, shell: Shell) -> None:
        add(shell, "brief")
        assert fields_of(shell.ok("jobs", "pause", "brief"))["state"] == "paused"
        assert part(shell.json("jobs", "show", "brief"), "enabled") is False
        resumed = fields_of(shell.ok("jobs", "resume", "brief"))
        assert resumed["state"] == "enabled"
        assert resumed["next"] != "-"

    def test_c10_a_manual_run_keeps_the_cadence_and_waits_for_a_node(self, shell: Shell) -> None:
        before = part(add(shell, "brief"), "state", "nextRunAt")
        run_id = part(shell.json("jobs", "run", "brief"), "runId")
        assert shell.ok("jobs", "run", "brief", "--if-due").out == "not due: nothing was fired\n"
        job = shell.json("jobs", "show", "brief")
        assert part(job, "state", "nextRunAt") == before
        assert part(job, "state", "unfinished") == 1
        (entry,) = entries(shell.json("jobs", "log", "brief"))
        assert (part(entry, "runId"), part(entry, "fired")) == (run_id, "manual")
        assert part(entry, "state") == "queued"

    def test_c10_pausing_and_removing_need_no_node_though_a_firing_waits(
        self, shell: Shell
    ) -> None:
        add(shell, "brief")
        shell.ok("jobs", "run", "brief")
        assert part(shell.json("jobs", "pause", "brief"), "enabled") is False
        shell.ok("jobs", "rm", "brief", "--yes")

    def test_c10_removing_keeps_the_log(self, shell: Shell) -> None:
        job_id = str(part(add(shell, "brief"), "id"))
        shell.ok("jobs", "run", "brief")
        told = shell.ok("jobs", "rm", "brief", "--yes").out
        assert told == f"removed; its log stays: headway jobs log {job_id}\n"
        assert shell.ok("jobs", "list").out == "no jobs\n"
        assert len(entries(shell.json("jobs", "log", job_id))) == 1
        assert job_id in shell.ok("jobs", "log").out

    def test_removing_asks_first(self, shell: Shell) -> None:
        add(shell, "brief")
        asked = shell("jobs", "rm", "brief", stdin="n\n")
        assert (asked.code, "nothing was removed" in asked.out) == (0, True)
        assert "Remove support/brief?" in asked.out
        silent = shell("jobs", "rm", "brief", stdin="")
        assert silent.code == 2
        assert silent.out.endswith("[y/N]: \n")
        assert "--yes" in silent.err
        assert names(shell.json("jobs", "list")) == ["brief"]
        assert shell("jobs", "rm", "brief", stdin="y\n").code == 0
        assert shell.ok("jobs", "list").out == "no jobs\n"


class TestLog:
    def test_pages_of_one_job_and_of_all(self, shell: Shell) -> None:
        add(shell, "a", "--tz", "Asia/Tokyo")
        add(shell, "b")
        for name in ("a", "a", "b"):
            shell.ok("jobs", "run", name)
        first = shell.json("jobs", "log", "a", "-n", "1")
        cursor = str(part(first, "cursor"))
        rest = shell.json("jobs", "log", "a", "--cursor", cursor)
        assert [part(entry, "number") for entry in [*entries(first), *entries(rest)]] == [2, 1]
        assert len(entries(shell.json("jobs", "log"))) == 3
        page = shell("jobs", "log", "-n", "2")
        head, newest, older = page.lines
        assert re.split(r"  +", head) == [
            "job",
            "due",
            "late",
            "fired",
            "outcome",
            "attempts",
            "tokens",
            "what",
        ]
        assert newest.startswith("support/b ")
        assert " UTC " in newest
        assert " Asia/Tokyo " in older
        assert "--cursor" in page.err
        assert " UTC " in shell.ok("jobs", "log", "a", "--tz", "UTC").lines[1]

    def test_nothing_has_happened_yet(self, shell: Shell) -> None:
        add(shell, "a")
        assert shell.ok("jobs", "log", "a").out == "nothing has happened yet\n"


CRONTAB = """\
CRON_TZ=America/Sao_Paulo
# Nightly backup
30 2 * * * /opt/backup --all
*/10 * * * * poll
@reboot /opt/start
"""

OPENCLAW = {
    "version": 1,
    "jobs": [
        {
            "id": "a1",
            "agentId": "support",
            "name": "brief",
            "enabled": True,
            "schedule": {"kind": "cron", "expr": "0 9 * * 1-5", "tz": "America/Sao_Paulo"},
            "sessionTarget": "isolated",
            "wakeMode": "next-heartbeat",
            "payload": {"kind": "agentTurn", "message": "What is new?", "model": "fast"},
        }
    ],
}


class TestFiles:
    def test_c12_what_is_exported_can_be_imported_elsewhere_and_is_the_same(
        self, shell: Shell, tmp_path: Path
    ) -> None:
        add(shell, "brief", "--cron", "0 9 * * *", "--tz", "Asia/Tokyo", "--deliver", "log")
        shell.ok("jobs", "add", "backup", "--every", "6h", "--command", "backup --all")
        exported = shell.ok("jobs", "export").out
        (tmp_path / "jobs.json").write_text(exported, encoding="utf-8")
        other = Shell(f"sqlite:///{tmp_path}/other.db")
        called = other.ok("jobs", "import", str(tmp_path / "jobs.json"))
        assert [line.split()[:2] for line in called.lines] == [
            ["added", "command/backup"],
            ["added", "support/brief"],
        ]
        assert other.ok("jobs", "export").out == exported
        again = other.ok("jobs", "import", "-", stdin=exported)
        assert [line.split()[0] for line in again.lines] == ["replaced", "replaced"]
        assert len(json.loads(other.ok("jobs", "export", "--agent", "support").out)) == 1

    def test_c12_a_crontab_is_taken_over_with_a_report_of_what_could_not_be(
        self, shell: Shell
    ) -> None:
        dry = shell("jobs", "import", "-", "--crontab", "--dry-run", stdin=CRONTAB)
        assert dry.code == 2
        assert dry.lines == [
            "would take command/Nightly backup",
            "would take command/poll ce9a",
        ]
        assert dry.err.startswith("left out: line 5, @reboot /opt/start: ")
        assert not Path(shell.store.removeprefix("sqlite:///")).exists()
        done = shell("jobs", "import", "-", "--crontab", stdin=CRONTAB)
        assert (done.code, done.err) == (2, dry.err)
        assert [line.split()[0] for line in done.lines] == ["added", "added"]
        job = shell.json("jobs", "show", "Nightly backup")
        assert part(job, "schedule", "tz") == "America/Sao_Paulo"
        assert part(job, "payload", "argv") == ["/bin/sh", "-c", "/opt/backup --all"]

    def test_times_without_a_zone_are_in_the_one_that_is_named(self, shell: Shell) -> None:
        tab = "0 9 * * * greet\n"
        shell.ok("jobs", "import", "-", "--crontab", "--tz", "Europe/Paris", stdin=tab)
        assert " 09:00 Europe/Paris" in shell.ok("jobs", "list").out

    def test_c12_the_jobs_of_openclaw_come_with_notes(self, shell: Shell) -> None:
        called = shell("jobs", "import", "-", stdin=json.dumps(OPENCLAW))
        assert called.code == 0
        assert called.lines == ["added support/brief (a1)"]
        assert "note: jobs[0].payload.model: " in called.err
        report = shell("jobs", "import", "-", "--json", stdin=json.dumps(OPENCLAW))
        told = json.loads(report.out)
        assert ([job["id"] for job in told["changed"]], told["added"]) == (["a1"], [])
        assert all(problem["taken"] for problem in told["problems"])

    @pytest.mark.parametrize(
        ("arguments", "text", "complaint"),
        [
            (("no-such-file.json",), "", "FILE"),
            (("-",), "not json", "jobs"),
            (("-",), '{"a": 1}', "jobs"),
            (("-", "--user-column"), "[]", "--user-column"),
            (("-", "--tz", "Nowhere"), "[]", "--tz"),
        ],
    )
    def test_what_is_no_file_of_jobs_is_refused(
        self, shell: Shell, arguments: tuple[str, ...], text: str, complaint: str
    ) -> None:
        assert complaint in shell.refused("jobs", "import", *arguments, stdin=text)

    def test_a_file_of_which_nothing_can_be_taken(self, shell: Shell) -> None:
        called = shell("jobs", "import", "-", stdin='[{"name": "x"}]')
        assert (called.code, called.out) == (2, "no job can be taken from it\n")
        assert "left out: jobs[0]" in called.err


class TestBesideAWorker:
    @pytest.fixture(params=["sqlite", "postgres"])
    def shared(self, request: pytest.FixtureRequest, tmp_path: Path) -> Shell:
        return sqlite_shell(tmp_path) if request.param == "sqlite" else Shell(fresh_url())

    @pytest.mark.timeout(300)
    def test_d2_jobs_are_added_fired_and_paused_while_a_worker_owns_the_store(
        self, shared: Shell, tmp_path: Path
    ) -> None:
        with worker(tmp_path, shared.store, "--commands"):
            shared.ok("jobs", "add", "hello", "--every", "1h", "--command", "echo hello there")
            assert shared.ok("jobs", "run", "hello", "--wait").out == "hello there\n"
            shared.ok("jobs", "add", "bad", "--at", "in 200ms", "--retries", "0",
                      "--command", '["sh", "-c", "echo oops; exit 3"]')  # fmt: skip
            wait_until(lambda: outcome_of(shared, "bad") == "failed")
            log = shared.ok("jobs", "log", "bad")
            assert "failed/error" in log.lines[1]
            assert "exit code 3: oops" in log.lines[1]
            failed = shared("jobs", "run", "bad", "--wait")
            assert (failed.code, failed.out) == (4, "")
            assert "ended failed/error" in failed.err
            shared.ok("jobs", "add", "long", "--every", "1h", "--command", "sleep 600")
            for _ in range(2):
                shared.ok("jobs", "run", "long")
            wait_until(lambda: states_of(shared, "long") == ["queued", "running"])
            shared.ok("jobs", "pause", "long")
            wait_until(lambda: states_of(shared, "long") == ["cancelled", "running"])
            lines = shared.ok("jobs", "list").lines
            assert {line.split()[0]: line.split()[-2:] for line in lines[1:]} == {
                "bad": ["2", "over"],
                "hello": ["0", "enabled"],
                "long": ["0", "paused"],
            }

    def test_a_worker_may_call_the_agent_of_commands_as_it_likes(self, tmp_path: Path) -> None:
        shell = sqlite_shell(tmp_path)
        with worker(tmp_path, shell.store, "--commands-as", "shell"):
            shell.ok("jobs", "add", "x", "--agent", "shell", "--every", "1h", "--command", "echo x")
            assert shell.ok("jobs", "run", "x", "--wait").out == "x\n"

    def test_a_worker_without_agents_or_store_is_refused(self) -> None:
        nothing = Shell("")("worker")
        assert nothing.code == 2
        assert "'--agents'" in nothing.err
        assert "--store" in Shell("memory://").refused("worker", "--commands")


def add(shell: Shell, name: str, *arguments: str) -> object:
    """A job with what is not said filled in."""
    said = list(arguments)
    if not {"--cron", "--every", "--at"} & set(said):
        said += ["--every", "1h"]
    if "--agent" not in said:
        said += ["--agent", "support"]
    return shell.json("jobs", "add", name, "--text", "hello", *said)


def names(listed: object) -> list[object]:
    found = part(listed, "jobs")
    assert isinstance(found, list)
    return [part(job, "name") for job in found]


def entries(log: object) -> list[object]:
    found = part(log, "entries")
    assert isinstance(found, list)
    return found


def firings(told: object) -> list[object]:
    found = part(told, "firings")
    assert isinstance(found, list)
    return found


def outcome_of(shell: Shell, job: str) -> object:
    return part(shell.json("jobs", "show", job), "state", "lastOutcome")


def states_of(shell: Shell, job: str) -> list[object]:
    return [part(entry, "state") for entry in entries(shell.json("jobs", "log", job))]


def test_help_says_what_each_command_does_with_an_example_of_the_harder_ones() -> None:
    shell = Shell("")
    told = shell.ok("jobs", "--help").out
    for command in (
        "list", "add", "show", "edit", "pause", "resume", "run", "rm", "log", "next", "import",
        "export",
    ):  # fmt: skip
        assert f" {command} " in told
        assert "Exit codes: 0" in shell.ok("jobs", command, "--help").out
    for command in ("add", "edit", "next", "import"):
        assert f"headway jobs {command} " in shell.ok("jobs", command, "--help").out


class SlowPipe(io.RawIOBase):
    """Takes a little at a time, as a pipe may whose reader is slow."""

    def __init__(self) -> None:
        self.taken = b""

    def writable(self) -> bool:
        return True

    def write(self, data: "ReadableBuffer", /) -> int:
        piece = bytes(data)[:1000]
        self.taken += piece
        return len(piece)


def test_a_long_text_reaches_a_slow_pipe_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unbuffered, as in many containers, Python's own `print` drops what the pipe does not take at once."""
    pipe = SlowPipe()
    unbuffered = io.TextIOWrapper(pipe, encoding="utf-8", write_through=True)  # type: ignore[type-var]
    monkeypatch.setattr(sys, "stdout", unbuffered)
    text = "né" * 10_000
    print_all(text)
    assert pipe.taken.decode() == f"{text}\n"


def test_what_a_terminal_cannot_show_ends_no_command(shell: Shell) -> None:
    add(shell, "café")
    ran = headway("jobs", "list", HEADWAY_STORE=shell.store, PYTHONIOENCODING="ascii")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "caf?" in ran.stdout
