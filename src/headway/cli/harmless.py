"""An agent's words on a terminal: only shown. What in them would command the terminal is left out."""

import re

_COMMANDS_TO_THE_TERMINAL = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, moves of the cursor
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles, links
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"  # any other control character but tab and line feed
)


def harmless(text: str) -> str:
    return _COMMANDS_TO_THE_TERMINAL.sub("", text.replace("\r\n", "\n"))
