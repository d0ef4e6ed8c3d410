"""Chat commands as this side knows them: which the chat carries out itself, and which are a typing error."""

import re
from difflib import get_close_matches

from headway.core.commands import parse
from headway.model.errors import InvalidInput

HELP = """\
/stop      stop what runs        /stopall   and all that waits
/status    what runs and waits   /queue …   how messages queue: /queue collect
/quit      leave (Ctrl-D)        Alt-Enter  a new line in your message
Ctrl-C stops the running turn; if nothing runs, it leaves."""
LEAVE = frozenset({"/quit", "/exit"})
HELP_WORD = "/help"

_WORD = re.compile(r"(/[a-z]+)(?:\s.*)?", re.IGNORECASE | re.DOTALL)
_KNOWN = ("/stop", "/stopall", "/status", "/queue", "/quit", "/exit", HELP_WORD)


def unknown_command(text: str) -> str:
    """What to say of a text that looks like a command and is none: it goes to the agent. Empty: nothing."""
    found = _WORD.fullmatch(text.strip())
    if found is None or _is_command(text):
        return ""
    word = found[1].lower()
    close = get_close_matches(word, _KNOWN, n=1)
    hint = f"did you mean {close[0]}?" if close and close[0] != word else "/help lists them"
    return f"{word} is no command here, so the agent is told it; {hint}"


def _is_command(text: str) -> bool:
    try:
        return parse(text) is not None
    except InvalidInput:
        return True  # The server will say what is wrong with it.
