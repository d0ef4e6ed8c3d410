"""`headway heartbeat`: watching and changing the wake-ups of agents from a shell."""

import re
from pathlib import Path

import pytest

from tests.unit.cli.calling import Shell, fields_of, part, shell, sqlite_shell
from tests.unit.cli.working import wait_until, worker

__all__ = ["shell"]

AGENTS = """\
from headway import Headway, Turn

hw = Headway()


@hw.agent("support")
async def support(turn: Turn) -> str:
    return "The mail is full."
"""


def wakeups(shell: Shell) -> list[object]:
    found = part(shell.json("heartbeat", "log", "support"), "entries")
    assert isinstance(found, list)
    return found


class TestSetting:
    def test_h1_what_is_not_said_is_at_its_default(self, shell: Shell) -> None:
        fields = fields_of(shell.ok("heartbeat", "set", "support"))
        assert fields["every"] == "30m"
        assert (fields["hours"], fields["target"], fields["session"]) == ("-", "last", "main")
        assert fields["checklist"] == "in the store: there is none, so the agent is not woken"
        assert re.search(r" UTC \(in .+\)$", fields["next"])

    def test_h1_everything_can_be_said(self, shell: Shell, tmp_path: Path) -> None:
        told = shell.json(
            "heartbeat", "set", "support", "--every", "20m", "--prompt", "Look!",
            "--hours", "22:00-06:00", "--tz", "Asia/Tokyo", "--target", "telegram:42",
            "--checklist", str(tmp_path / "HEARTBEAT.md"), "--ack-max-chars", "10",
            "--lane", "slow", "--session", "isolated", "--timeout", "5m",
        )  # fmt: skip
        assert isinstance(told, dict)
        assert told["hours"] == {"hours": "22:00-06:00", "tz": "Asia/Tokyo"}
        assert told["target"] == {"channel": "telegram", "to": "42"}
        assert told["checklist"] == str(tmp_path / "HEARTBEAT.md")
        assert (told["every"], told["timeout"], told["lane"]) == ("20m", "5m", "slow")
        assert (told["prompt"], told["session"], told["ackMaxChars"]) == ("Look!", "isolated", 10)

    @pytest.mark.parametrize(
        ("arguments", "field"),
        [
            (("--every", "0"), "every"),
            (("--every", "soon"), "every"),
            (("--hours", "25:00-26:00"), "hours.start"),
            (("--hours", "08:00-08:00"), "hours"),
            (("--hours", "08:00-22:00", "--tz", "Nowhere"), "tz"),
            (("--tz", "UTC"), "tz"),
            (("--target", "{"), "--target"),
        ],
    )
    def test_h1_what_is_malformed_is_refused_naming_the_field(
        self, shell: Shell, arguments: tuple[str, ...], field: str
    ) -> None:
        err = shell.refused("heartbeat", "set", "support", *arguments)
        assert err.startswith(f"headway: {field}: ")

    def test_one_can_be_paused_resumed_and_removed(self, shell: Shell) -> None:
        shell.ok("heartbeat", "set", "support")
        assert fields_of(shell.ok("heartbeat", "pause", "support"))["state"] == "paused"
        assert "enabled" in shell.refused("heartbeat", "wake", "support")
        assert fields_of(shell.ok("heartbeat", "resume", "support"))["state"] == "enabled"
        assert "nothing was removed" in shell("heartbeat", "rm", "support", stdin="n\n").out
        told = shell.ok("heartbeat", "rm", "support", "--yes").out
        assert told == "support has no heartbeat any more\n"
        assert shell.ok("heartbeat", "status").out == "no heartbeats\n"

    @pytest.mark.parametrize("command", ["status", "wake", "log", "pause", "resume", "rm"])
    def test_an_agent_without_a_heartbeat(self, shell: Shell, command: str) -> None:
        shell.ok("heartbeat", "set", "support")
        assert "'supprt'" in shell.refused("heartbeat", command, "supprt")


class TestStatus:
    def test_all_agents_with_their_next_wake_up(self, shell: Shell) -> None:
        shell.ok("heartbeat", "set", "support", "--hours", "08:00-22:00", "--tz", "Asia/Tokyo")
        shell.ok("heartbeat", "set", "coder", "--target", "log")
        head, coder, support = shell.ok("heartbeat", "status").lines
        assert re.split(r"  +", head) == [
            "agent",
            "every",
            "hours",
            "next",
            "last",
            "target",
            "state",
        ]
        assert re.split(r"  +", coder)[::5] == ["coder", "log"]
        assert re.split(r"  +", support)[2] == "08:00-22:00 Asia/Tokyo"
        assert " Asia/Tokyo (in " in support
        assert " UTC (in " in shell.ok("heartbeat", "status", "--tz", "UTC").lines[2]
        listed = shell.json("heartbeat", "status")
        assert [part(listed, "heartbeats", number, "agentId") for number in (0, 1)] == [
            "coder",
            "support",
        ]
        assert shell.ok("jobs", "list").out == "no jobs\n"

    def test_an_agent_that_is_asleep_says_until_when(self, shell: Shell) -> None:
        # One of these two halves of the day is not now.
        said = [
            shell.ok("heartbeat", "set", "support", "--hours", hours).out
            for hours in ("00:00-12:00", "12:00-24:00")
        ]
        (asleep,) = [out for out in said if "asleep until" in out]
        assert re.search(r"asleep until .+ (00|12):00 UTC \(in ", asleep)


class TestChecklist:
    def test_it_is_kept_in_the_store_unless_a_file_is_named(self, shell: Shell) -> None:
        shell.ok("heartbeat", "set", "support")
        assert "support has no checklist" in shell.ok("heartbeat", "checklist", "support").out
        shell.ok("heartbeat", "checklist", "support", "--set", "-", stdin="# Mail\n- look\n")
        assert shell.ok("heartbeat", "checklist", "support").out == "# Mail\n- look\n"
        told = shell.json("heartbeat", "checklist", "support")
        assert part(told, "checklist") == "# Mail\n- look\n"
        assert fields_of(shell.ok("heartbeat", "status", "support"))["checklist"] == (
            "in the store: 2 lines"
        )

    def test_a_file_is_read_and_written_where_it_is(self, shell: Shell, tmp_path: Path) -> None:
        path, text = tmp_path / "HEARTBEAT.md", tmp_path / "new.md"
        shell.ok("heartbeat", "set", "support", "--checklist", str(path))
        text.write_text("# Nothing\n", encoding="utf-8")
        shell.ok("heartbeat", "checklist", "support", "--set", str(text))
        assert path.read_text(encoding="utf-8") == "# Nothing\n"
        assert shell.ok("heartbeat", "checklist", "support").out == "# Nothing\n"
        shown = fields_of(shell.ok("heartbeat", "status", "support"))["checklist"]
        assert shown == f"{path}: nothing is on it, so the agent is not woken"

    def test_a_text_that_cannot_be_read_is_refused(self, shell: Shell) -> None:
        shell.ok("heartbeat", "set", "support")
        assert "--set" in shell.refused("heartbeat", "checklist", "support", "--set", "none.md")


def test_h2_h4_a_wake_from_the_shell_reaches_the_worker_and_the_log_says_what_became_of_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "agents.py").write_text(AGENTS, encoding="utf-8")
    shell = sqlite_shell(tmp_path)
    with worker(tmp_path, shell.store, "--agents", "agents:hw"):
        shell.ok("heartbeat", "set", "support", "--every", "1d", "--target", "none")
        assert part(shell.json("heartbeat", "wake", "support"), "wakeAt")
        wait_until(lambda: len(wakeups(shell)) == 1)
        (skipped,) = wakeups(shell)
        assert (part(skipped, "fired"), part(skipped, "reason")) == ("skipped", "no_checklist")
        shell.ok("heartbeat", "checklist", "support", "--set", "-", stdin="- the mail\n")
        shell.ok("heartbeat", "wake", "support")
        wait_until(lambda: part(wakeups(shell)[0], "state") == "done")
        assert part(wakeups(shell)[0], "outcome", "text") == "The mail is full."
        log = shell.ok("heartbeat", "log", "support").lines
        assert "The mail is full." in log[1]
        assert "no checklist" in log[2]
        fields = fields_of(shell.ok("heartbeat", "status", "support"))
        assert fields["last run"].startswith("done; ")
