"""The `headway` command against a real `headway serve`: what HTTP does, it does, and it says the same (O-5)."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.cli.shell import Shell
from tests.e2e.gateway.cast import gate
from tests.e2e.gateway.servers import Server, serving
from tests.e2e.serve.asking import until


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("commands")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    with serving(folder) as started:
        yield started


@pytest.fixture(scope="module")
def shell(server: Server) -> Shell:
    return Shell(server)


def until_state(server: Server, run_id: object, state: str) -> None:
    """Until a run is in this state, as the store has it."""
    path = f"/runs/{run_id}"
    until(lambda: bool(server.http.get(path).json()["state"] == state), f"it is {state}")


def field(data: object, *path: str | int) -> object:
    for step in path:
        assert isinstance(data, dict | list), data
        data = data[step]  # type: ignore[index]
    return data


class TestRun:
    def test_a_run_is_waited_for_and_its_reply_printed(self, shell: Shell) -> None:
        ran = shell("run", "echo", "hello", "there")
        assert (ran.code, ran.out, ran.err) == (0, "echo: hello there\n", "")

    def test_the_text_may_come_from_a_pipe(self, shell: Shell) -> None:
        assert shell.ok("run", "echo", "-", stdin="a\nb\n") == "echo: a\nb\n"
        assert shell.ok("run", "echo", stdin="piped") == "echo: piped\n"

    def test_o5_json_is_what_http_answers(self, shell: Shell, server: Server) -> None:
        told = shell.json("run", "echo", "hi")
        assert told == server.http.get(f"/runs/{told['runId']}").json()
        assert shell.json("runs", "show", str(told["runId"])) == told

    def test_a_run_without_a_reply_ends_with_4(self, shell: Shell) -> None:
        ran = shell("run", "steady", "hold ever", "--deadline", "3s")
        assert (ran.code, ran.out) == (4, "")
        assert "ended failed/deadline_running" in ran.err

    def test_what_is_refused_ends_with_2_and_names_the_field(self, shell: Shell) -> None:
        ran = shell("run", "nobody", "hi")
        assert ran.code == 2
        assert ran.err.startswith("headway: agentId: 'nobody'")

    def test_without_waiting_the_run_is_named_and_can_be_watched(
        self, shell: Shell, folder: Path
    ) -> None:
        taken = shell.json("run", "steady", "hold watched", "--no-wait")
        run_id = str(taken["runId"])
        watching = subprocess.Popen(
            [sys.executable, "-m", "headway", "runs", "watch", run_id],
            env=shell.environment,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        gate("watched", folder).touch()
        out, _ = watching.communicate(timeout=120)
        assert (watching.returncode, out) == (0, "steady held watched; told []\n")


class TestSend:
    def test_messages_of_one_person_are_one_conversation(self, shell: Shell) -> None:
        assert shell.ok("send", "echo", "hi") == "echo: hi\n"
        runs = shell.json("runs", "list", "--agent", "echo", "-n", "1")
        assert str(field(runs, "runs", 0, "session")).startswith("agent:echo:cli:dm:")

    def test_s9_commands_are_answered_and_stop_stops(self, shell: Shell, server: Server) -> None:
        session = ("--session", "shop")
        held = shell.json("send", "steady", "hold ever", *session, "--no-wait")
        until_state(server, held["runId"], "running")
        assert "running for" in shell.ok("send", "steady", "/status", *session)
        assert shell.ok("stop", "shop") == "1 running stopped\n"
        assert shell("runs", "watch", str(held["runId"])).code == 4
        assert shell.json("stop", "shop", "--all")["text"] == "nothing to stop"

    def test_a_busy_session_that_rejects_ends_with_2(self, shell: Shell, server: Server) -> None:
        held = shell.json("send", "steady", "hold ever", "--session", "busy", "--no-wait")
        until_state(server, held["runId"], "running")
        ran = shell("send", "steady", "me", "--session", "busy", "--mode", "reject")
        assert (ran.code, ran.out) == (2, "")
        shell.ok("stop", "busy", "--all")

    def test_x1_why_a_run_waits_is_said(self, shell: Shell) -> None:
        held = shell.json("send", "steady", "hold ever", "--session", "line", "--no-wait")
        waits = shell.json("send", "steady", "next", "--session", "line", "--no-wait")
        why = shell.ok("runs", "why", str(waits["runId"]))
        assert str(held["runId"]) in why
        assert shell.json("runs", "cancel", str(waits["runId"]))["state"] == "cancelled"
        shell.ok("stop", "line", "--all")


class TestTasks:
    def test_t1_a_task_is_submitted_seen_and_cancelled(self, shell: Shell, server: Server) -> None:
        ran = shell.ok("tasks", "submit", "greedy", "click", "--ref", "e1", "-p", "n=1", "--wait")
        assert ran == "click e1\n"
        taken = shell.json("tasks", "submit", "greedy", "wait", "-p", "gate=never")
        task_id = str(taken["taskId"])
        until_state(server, task_id, "running")
        shown = shell.json("tasks", "show", task_id)
        assert field(shown, "params", "gate") == "never"
        assert shell.json("tasks", "cancel", task_id)["cancelling"] is True
        until_state(server, task_id, "cancelled")
        again = shell("tasks", "cancel", "nosuch")
        assert again.code == 2
        listed = shell.json("tasks", "list", "--agent", "greedy")
        assert listed == server.http.get("/tasks?agentId=greedy&limit=20").json()

    def test_t5_a_batch_comes_from_lines_or_a_list(self, shell: Shell) -> None:
        lines = '{"action": "a"}\n{"action": "b"}\n'
        assert shell.json("tasks", "batch", "modest", "-", stdin=lines)["submitted"] == 2
        whole = json.dumps([{"action": "a"}, {"nonsense": 1}])
        ran = shell("tasks", "batch", "modest", "-", stdin=whole)
        assert ran.code == 2
        assert "tasks[1]" in ran.err

    def test_stats_are_those_of_the_server(self, shell: Shell) -> None:
        told = shell.json("tasks", "stats")
        assert field(told, "limits", "maxQueue") == 1000
        assert "greedy" in shell.ok("tasks", "stats")


class TestSteering:
    def test_l2_lanes_are_resized_paused_and_cleared(self, shell: Shell) -> None:
        assert shell.json("lanes", "set", "slow", "3", "--reserve", "1")["width"] == 3
        assert "lane slow is paused" in shell.ok("lanes", "pause", "slow")
        waits = shell.json("run", "echo", "hi", "--lane", "slow", "--no-wait")
        assert shell.ok("lanes", "clear", "slow") == "1 waiting run ended\n"
        assert shell.json("runs", "show", str(waits["runId"]))["state"] == "cancelled"
        assert shell.json("lanes", "resume", "slow")["paused"] is False
        bounded = shell.json("lanes", "set", "slow", "--runs-per-minute", "5")
        assert (bounded["width"], bounded["runsPerMinute"]) == (3, 5)
        unbounded = shell.json("lanes", "set", "slow", "--runs-per-minute", "none")
        assert unbounded["runsPerMinute"] is None
        assert "slow" in shell.ok("lanes", "list")

    def test_s5_a_session_gets_its_own_options_and_loses_them(self, shell: Shell) -> None:
        key = "agent:echo:web:dm:a/b c"
        told = shell.json("sessions", "set", key, "--mode", "collect", "--debounce", "2s")
        assert field(told, "queue", "mode") == "collect"
        assert "mode:collect debounce:2s" in shell.ok("sessions", "show", key)
        assert field(shell.json("sessions", "reset", key), "queue", "mode") is None
        assert shell.ok("sessions", "clear", key) == "0 messages ended\n"

    def test_nodes_outbox_health_and_events_are_shown(self, shell: Shell, server: Server) -> None:
        assert "server" in shell.ok("nodes")
        assert shell.json("nodes") == server.http.get("/nodes").json()
        assert shell.ok("outbox", "list") == "nothing\n"
        assert shell.ok("health") == "ready\n"
        shell.ok("run", "echo", "hi")
        line = shell.ok("events", "--event", "runfinished", "-n", "1")
        assert "RunFinished" in line
        assert "agent=echo" in line
        assert json.loads(shell.ok("events", "-n", "1", "--json"))["at"]

    def test_the_screen_is_printed_once_where_there_is_no_terminal(self, shell: Shell) -> None:
        assert "main" in shell.ok("top")
        assert field(shell.json("top"), "stats", "name") == "server"

    def test_a_short_load_is_measured(self, shell: Shell) -> None:
        told = shell.json("bench", "--tasks", "40", "--concurrency", "8")
        assert (told["taken"], told["done"]) == (40, 40)


class TestJobs:
    """The commands for jobs and heartbeats ask the server where no store is named."""

    def test_c13_jobs_are_added_fired_and_removed(self, shell: Shell, server: Server) -> None:
        shell.ok(
            "jobs", "add", "brief", "--agent", "echo", "--cron", "0 9 * * *",
            "--tz", "Asia/Tokyo", "--text", "news?",
        )  # fmt: skip
        assert shell.json("jobs", "show", "brief") == server.http.get("/jobs/echo%2Fbrief").json()
        assert shell.ok("jobs", "run", "brief", "--wait") == "echo: news?\n"
        assert "Asia/Tokyo" in shell.ok("jobs", "next", "brief", "-n", "1")
        assert "done" in shell.ok("jobs", "log", "brief")
        edited = shell.json("jobs", "edit", "brief", "--every", "10m")
        assert field(edited, "schedule", "kind") == "every"
        exported = shell.ok("jobs", "export")
        assert "paused" in shell.ok("jobs", "pause", "brief")
        shell.ok("jobs", "rm", "brief", "--yes")
        assert "added echo/brief" in shell.ok("jobs", "import", "-", stdin=exported)
        listed = shell.json("jobs", "list")["jobs"]
        assert isinstance(listed, list)
        assert "brief" in [job["name"] for job in listed]
        assert shell("jobs", "show", "nosuch").code == 2

    def test_a_crontab_is_imported_in_the_zone_that_is_named(self, shell: Shell) -> None:
        asked = ("jobs", "import", "-", "--crontab", "--agent", "echo", "--tz", "Asia/Tokyo")
        shell.ok(*asked, stdin="0 6 * * * backup --all\n")
        listed = shell.ok("jobs", "list", "--agent", "echo")
        assert "0 6 * * * (Asia/Tokyo)" in listed

    def test_h1_heartbeats_are_set_and_their_checklist_written(self, shell: Shell) -> None:
        told = shell.json("heartbeat", "set", "echo", "--every", "20m", "--target", "web:42")
        assert told["every"] == "20m"
        shell.ok("heartbeat", "checklist", "echo", "--set", "-", stdin="- look\n")
        assert shell.ok("heartbeat", "checklist", "echo") == "- look\n"
        assert "1 line" in shell.ok("heartbeat", "status", "echo")
        assert "echo" in shell.ok("heartbeat", "status")
        assert shell("heartbeat", "status", "nosuch").code == 2
        shell.ok("heartbeat", "rm", "echo", "--yes")


def test_o4_with_tokens_the_shell_needs_one(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/server.db"
    with serving(tmp_path, store) as server:
        nobody = Shell(server)
        made = nobody("tokens", "create", "reader", "--scope", "read", "--store", store)
        reader = Shell(server, made.out.strip())
        refused = Shell(server, "hw_wrong_token")
        while reader("lanes", "list").code:
            pass
        while (ran := nobody("lanes", "list")).code == 0:
            pass
        assert (ran.code, ran.out) == (2, "")
        assert "HEADWAY_TOKEN" in ran.err
        assert refused("lanes", "list").code == 2
        assert reader("run", "echo", "hi").code == 2


def test_no_server_is_said_with_exit_code_3(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        pass
    ran = Shell(server)("lanes", "list")
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.startswith(f"headway: no server answers at {server.url} (connection refused)")
