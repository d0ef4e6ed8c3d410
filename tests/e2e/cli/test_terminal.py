"""`headway chat` and `headway top` at a real terminal, against a real server."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.cli.shell import Shell, serving_again
from tests.e2e.cli.terminal import at_terminal
from tests.e2e.gateway.cast import gate
from tests.e2e.gateway.servers import Server, serving


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(tmp_path) as started:
        yield started


def test_a_chat_goes_on_while_the_agent_works(server: Server, tmp_path: Path) -> None:
    with at_terminal(("chat", "steady", "--session", "talk"), Shell(server).environment) as chat:
        chat.wait_for("/help")
        chat.type("hold door\r")
        chat.wait_for("holding door")
        chat.wait_for("steady is typing")
        chat.type("and then\r")
        chat.wait_for("1 waiting")
        gate("door", tmp_path).touch()
        chat.wait_for("steady: steady held door; told []")
        chat.wait_for("steady: steady: and then")
        chat.type("/quit\r")
        assert chat.end() == 0


def test_s9_stop_works_at_once_and_ctrl_c_stops_what_runs(server: Server) -> None:
    with at_terminal(("chat", "steady", "--session", "talk"), Shell(server).environment) as chat:
        chat.wait_for("/help")
        chat.type("hold ever\r")
        chat.wait_for("holding ever")
        chat.type("/stop\r")
        chat.wait_for("1 running stopped")
        chat.type("hold again\r")
        chat.wait_for("holding again")
        chat.type("\x03")
        chat.wait_for("1 running stopped")
        chat.type("\x04")
        assert chat.end() == 0


def test_d1_what_was_said_survives_a_server_that_is_killed(tmp_path: Path) -> None:
    """The message has its key: sent again to the next server, it is one run."""
    with serving(tmp_path) as first:
        environment = Shell(first).environment
        with at_terminal(("chat", "steady", "--session", "talk"), environment) as chat:
            chat.wait_for("/help")
            chat.type("hold later\r")
            chat.wait_for("holding later")
            first.process.kill()
            chat.wait_for("the server is away; trying again")
            chat.type("said meanwhile\r")
            gate("later", tmp_path).touch()
            with serving_again(tmp_path, first) as second:
                chat.wait_for("steady: steady held later; told []")
                chat.wait_for("steady: steady: said meanwhile")
                runs = second.http.get("/runs?session=talk").json()["runs"]
                assert [run["text"] for run in runs] == ["said meanwhile", "hold later"]
                chat.type("/quit\r")
                assert chat.end() == 0


def test_what_was_said_before_is_shown_again(server: Server) -> None:
    shell = Shell(server)
    shell.ok("send", "echo", "remember me", "--session", "talk")
    with at_terminal(("chat", "echo", "--session", "talk"), shell.environment) as chat:
        chat.wait_for("remember me")
        chat.wait_for("echo: echo: remember me")
        chat.type("/quit\r")
        assert chat.end() == 0


def test_through_a_pipe_each_line_is_a_message(server: Server) -> None:
    ran = Shell(server)("chat", "echo", stdin="one\n\ntwo\n")
    assert (ran.code, ran.out, ran.err) == (0, "echo: one\necho: two\n", "")


def test_through_a_pipe_help_is_help_and_a_typing_error_is_noted(server: Server) -> None:
    ran = Shell(server)("chat", "echo", stdin="/help\n/statsu\n/quit\nnever\n")
    assert (ran.code, ran.out) == (0, "echo: /statsu\n")
    assert "stop what runs" in ran.err
    assert "did you mean /status?" in ran.err


def test_the_screen_shows_what_happens_and_ends_with_q(server: Server) -> None:
    shell = Shell(server)
    with at_terminal(("top",), shell.environment) as top:
        top.wait_for("q ends it")
        shell.ok("run", "echo", "hello")
        top.wait_for("done in")
        assert top.blocks, "what is written waits for a slow terminal, also in the shell afterwards"
        top.type("q")
        assert top.end() == 0


def test_the_screen_waits_for_a_server_that_goes_away(tmp_path: Path) -> None:
    with serving(tmp_path) as first, at_terminal(("top",), Shell(first).environment) as top:
        top.wait_for("q ends it")
        first.process.kill()
        top.wait_for("no server answers")
        with serving_again(tmp_path, first):
            top.wait_for("node 2")
            top.process.send_signal(signal.SIGINT)
            assert top.end() == 0


def test_watching_shows_changes_in_place(server: Server) -> None:
    shell = Shell(server)
    with at_terminal(("lanes", "list", "--watch"), shell.environment) as watch:
        watch.wait_for("team")
        shell.ok("lanes", "set", "fresh", "7")
        watch.wait_for("fresh")
        watch.process.send_signal(signal.SIGINT)
        assert watch.end() == 0
