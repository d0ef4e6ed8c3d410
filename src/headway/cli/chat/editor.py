"""The line that is being typed: keys in, lines out."""

import re
from collections.abc import Callable

_KEY = re.compile(
    r"\x1b\[200~(?P<pasted>.*?)\x1b\[201~"
    r"|\x1b\[[0-9;]*[A-Za-z~]"
    r"|\x1bO[A-Z]"
    r"|\x1b[\r\n]"
    r"|\x1b."
    r"|[\x00-\x1a\x1c-\x1f\x7f]"
    r"|[^\x00-\x1f\x7f]+",
    re.DOTALL,
)
_UNFINISHED = re.compile(r"\x1b(?:\[[0-9;]*)?$|\x1b\[200~(?!.*\x1b\[201~).*$|\x1bO$", re.DOTALL)
_WORD = re.compile(r"\S+\s*$")
_HISTORY = 200

INTERRUPT = "\x03"
END = "\x04"


class Editor:
    """One line with a cursor, and the lines before it. Knows the keys that people expect from a shell."""

    def __init__(self) -> None:
        self.text = ""
        self.cursor = 0
        self._rest = ""
        self._history: list[str] = []
        self._place: int | None = None
        self._draft = ""

    def feed(self, typed: str) -> list[str]:
        """Take keys in. Answers the lines that Enter has finished, and `INTERRUPT` or `END` where they came."""
        typed = self._rest + typed
        unfinished = _UNFINISHED.search(typed)
        self._rest = "" if unfinished is None else unfinished[0]
        done: list[str] = []
        for key in _KEY.finditer(typed[: len(typed) - len(self._rest)]):
            if key["pasted"] is not None:
                self.insert(key["pasted"].replace("\r\n", "\n").replace("\r", "\n"))
            elif (line := self._press(key[0])) is not None:
                done.append(line)
        return done

    def _press(self, key: str) -> str | None:
        if key in _ENTER:
            return self._finish()
        if key in {INTERRUPT, END} and not self.text:
            return key
        if key in _ACTIONS:
            _ACTIONS[key](self)
        elif key.isprintable():
            self.insert(key)
        return None

    def _finish(self) -> str:
        line = self.text
        if line.strip() and self._history[-1:] != [line]:
            self._history.append(line)
            del self._history[:-_HISTORY]
        self._place, self._draft = None, ""
        self._set("")
        return line

    def insert(self, text: str) -> None:
        self.text = self.text[: self.cursor] + text + self.text[self.cursor :]
        self.cursor += len(text)

    def clear(self) -> None:
        self._set("")

    def move(self, to: int) -> None:
        self.cursor = max(0, min(len(self.text), to))

    def delete_word(self) -> None:
        """The one before the cursor."""
        word = _WORD.search(self.text[: self.cursor])
        self.delete(-len(word[0]) if word else 0)

    def delete(self, count: int) -> None:
        """So many letters behind the cursor; before it, if negative."""
        start = max(0, min(self.cursor, self.cursor + count))
        end = max(self.cursor, self.cursor + count)
        self.text = self.text[:start] + self.text[end:]
        self.cursor = start

    def recall(self, step: int) -> None:
        if not self._history:
            return
        if self._place is None:
            if step > 0:
                return
            self._draft, self._place = self.text, len(self._history)
        self._place = max(0, self._place + step)
        if self._place >= len(self._history):
            self._place = None
            self._set(self._draft)
        else:
            self._set(self._history[self._place])

    def _set(self, text: str) -> None:
        self.text = text
        self.cursor = len(text)


_ENTER = frozenset({"\r", "\n"})
_ACTIONS: dict[str, Callable[[Editor], None]] = {}


def _on(*keys: str) -> Callable[[Callable[[Editor], None]], None]:
    def register(action: Callable[[Editor], None]) -> None:
        _ACTIONS.update(dict.fromkeys(keys, action))

    return register


_on(INTERRUPT)(Editor.clear)
_on("\x7f", "\x08")(lambda line: line.delete(-1))
_on("\x1b[3~", END)(lambda line: line.delete(1))
_on("\x15")(lambda line: line.delete(-line.cursor))
_on("\x0b")(lambda line: line.delete(len(line.text) - line.cursor))
_on("\x17")(Editor.delete_word)
_on("\x01", "\x1b[H", "\x1b[1~", "\x1bOH")(lambda line: line.move(0))
_on("\x05", "\x1b[F", "\x1b[4~", "\x1bOF")(lambda line: line.move(len(line.text)))
_on("\x1b[D", "\x1bOD", "\x02")(lambda line: line.move(line.cursor - 1))
_on("\x1b[C", "\x1bOC", "\x06")(lambda line: line.move(line.cursor + 1))
_on("\x1b[A", "\x1bOA", "\x10")(lambda line: line.recall(-1))
_on("\x1b[B", "\x1bOB", "\x0e")(lambda line: line.recall(1))
_on("\x1b\r", "\x1b\n")(lambda line: line.insert("\n"))
_on("\t")(lambda line: line.insert(" "))
