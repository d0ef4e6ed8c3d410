"""Chat commands on this side of the wire: a typing error is not told to the agent without a word."""

import pytest

from headway.cli.chat.words import unknown_command


@pytest.mark.parametrize(
    "text",
    ["hello", "/stop", "/STOPALL", "/status", "/queue", "/queue no such mode", "/etc/passwd", "/"],
)
def test_s9_commands_and_plain_text_need_no_note(text: str) -> None:
    assert not unknown_command(text)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("/stpo", "did you mean /stop?"),
        ("/Statsu now", "did you mean /status?"),
        ("/translate this", "/help lists them"),
        ("/stop it", "/help lists them"),
    ],
)
def test_what_looks_like_a_command_and_is_none_is_said(text: str, hint: str) -> None:
    assert unknown_command(text).endswith(f"so the agent is told it; {hint}")
