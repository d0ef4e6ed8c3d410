"""How a conversation looks on a terminal: what was said above, what is under way and the line to type in below."""

from rich.console import Group, RenderableType
from rich.text import Text

from headway.cli.chat.editor import Editor
from headway.cli.chat.talk import Entry, Talk, Who

_PROMPT = "» "
_PLAIN_PROMPT = "> "
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_PLAIN_SPINNER = "|/-\\"
_OUTPUT_LINES = 6


class Screen:
    """Draws; keeps nothing but how the terminal can be drawn on."""

    def __init__(self, agent: str, *, ascii_only: bool = False) -> None:
        self._agent = agent
        self._prompt = _PLAIN_PROMPT if ascii_only else _PROMPT
        self._spinner = _PLAIN_SPINNER if ascii_only else _SPINNER

    def entry(self, entry: Entry) -> Text:
        """Something that was said."""
        dim = "dim" if entry.old else ""
        match entry.who:
            case Who.YOU:
                return _below(Text(self._prompt, f"{dim} cyan"), entry.text, f"{dim} cyan")
            case Who.AGENT:
                return _below(Text(f"{self._agent}: ", f"{dim} bold green"), entry.text, dim)
            case Who.NOTE:
                return Text(f"  {entry.text}".replace("\n", "\n  "), "dim italic")

    def below(self, talk: Talk, editor: Editor, tick: int, *, width: int) -> RenderableType:
        """What changes: the turn's output, who is at work, and the line that is being typed."""
        parts: list[Text] = []
        if talk.output.strip():
            parts.append(_tail(talk.output, width))
        parts.append(self._status(talk, tick, width))
        parts.append(self._line(editor))
        return Group(*parts)

    def _status(self, talk: Talk, tick: int, width: int) -> Text:
        status = talk.status
        line = Text()
        if talk.busy and not talk.trouble:
            line.append(f"{self._spinner[tick % len(self._spinner)]} ", "green")
        line.append(status, "bold red" if talk.trouble else "dim")
        hint = "/stop  /status  /quit" if talk.busy or talk.sent else "/status  /quit"
        gap = width - line.cell_len - len(hint)
        if gap >= 2:
            line.append(" " * gap)
            line.append(hint, "dim")
        line.truncate(width, overflow="ellipsis")
        return line

    def _line(self, editor: Editor) -> Text:
        at = editor.text[editor.cursor : editor.cursor + 1]
        under = " " if at in ("", "\n") else at
        line = Text(self._prompt, "bold cyan")
        line.append(editor.text[: editor.cursor])
        line.append(under, "reverse")
        line.append(editor.text[editor.cursor + (0 if at in ("", "\n") else 1) :])
        return line


def _below(head: Text, text: str, style: str) -> Text:
    """Lines after the first begin below the words, not below the name."""
    indent = " " * head.cell_len
    lines = text.split("\n")
    head.append(f"\n{indent}".join(lines), style)
    return head


def _tail(output: str, width: int) -> Text:
    """The end of what a turn emits, in a few lines."""
    lines: list[str] = []
    for line in output.rstrip("\n").split("\n"):
        lines += [line[at : at + width - 4] for at in range(0, max(len(line), 1), width - 4)]
    return Text("\n".join(f"  {line}" for line in lines[-_OUTPUT_LINES:]), "dim")
