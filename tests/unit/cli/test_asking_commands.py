"""What is refused before any server is asked: in one line that says what to do instead."""

import pytest

from tests.unit.cli.calling import NO_SERVER, Shell


@pytest.mark.parametrize("command", ["send", "run"])
@pytest.mark.parametrize(("words", "stdin"), [((), ""), (("-",), " \n"), (("",), None)])
def test_nothing_is_never_sent(command: str, words: tuple[str, ...], stdin: str | None) -> None:
    told = Shell("").refused(command, "support", *words, stdin=stdin)
    assert told.startswith("headway: there is no text: ")


def test_something_attached_needs_no_text() -> None:
    sent = Shell("")("send", "support", "--attach", "https://x.example/bill.pdf", stdin="")
    assert (sent.code, NO_SERVER in sent.err) == (3, True)


@pytest.mark.parametrize("words", [(), ("agent:a:main", "--agent", "a")])
def test_what_to_stop_must_be_said_and_once(words: tuple[str, ...]) -> None:
    assert "say which session" in Shell("").refused("stop", *words)


def test_a_lane_is_set_to_something() -> None:
    assert "say what to set: a WIDTH" in Shell("").refused("lanes", "set", "main")


@pytest.mark.parametrize("line", ["send", "stop", "lanes set", "jobs log", "heartbeat status"])
def test_an_argument_that_may_be_left_out_has_one_pair_of_brackets(line: str) -> None:
    usage = next(line for line in Shell("").ok(*line.split(), "-h").lines if "Usage:" in line)
    assert "[[" not in usage
    assert "…" not in usage
