"""What a run emits, on the terminal of who waits for it; and what of its end has been seen there already."""

from typing import TYPE_CHECKING

from headway.cli.harmless import harmless

if TYPE_CHECKING:
    from headway.client.runs import News

_KEPT = 256 * 1024
"""So many characters of the end are remembered; a command's reply is shorter, unless more was set."""


class Emitted:
    """What a run emits, shown dim on stderr; a new attempt begins anew."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True, highlight=False, soft_wrap=True)
        self._open = False
        self._attempt = 0
        self._pieces: list[str] = []
        self._size = 0

    def show(self, news: "News") -> None:
        from headway.wire.output import AttemptBegun, AttemptOver, OutputPiece

        match news:
            case OutputPiece():
                self._print(news.text)
                self._remember(news.text)
            case AttemptBegun():
                if news.attempt > 1 and news.attempt != self._attempt:
                    self.note(f"(attempt {news.attempt})")
                self._attempt = news.attempt
                self._pieces, self._size = [], 0
            case AttemptOver():
                error = self.unseen(news.error)
                self.note(f"(it is tried again{f': {error}' if error else ''})")
            case _:
                pass

    def note(self, text: str) -> None:
        """Something beside the output, on a line of its own."""
        self.end()
        self._print(f"{text}\n")

    def end(self) -> None:
        """What comes next begins on a line of its own."""
        if self._open:
            self._console.print()
            self._open = False

    def ends_with(self, text: str) -> bool:
        """Whether this is all that the attempt has emitted, or its last lines."""
        said, seen = harmless(text).strip(), harmless("".join(self._pieces)).strip()
        if not said or not seen.endswith(said):
            return False
        before = seen.removesuffix(said)
        # A command's reply may begin within a line, where it was cut; one word at the end of a line is no reply.
        return not before or before.endswith("\n") or "\n" in said

    def unseen(self, error: str) -> str:
        """An error without the output in it, if that is on the terminal already."""
        what, _, output = error.partition(": ")
        return what if self.ends_with(output.removeprefix("…")) else error

    def _remember(self, text: str) -> None:
        self._pieces.append(text)
        self._size += len(text)
        if self._size > 2 * _KEPT:
            self._pieces = ["".join(self._pieces)[-_KEPT:]]
            self._size = _KEPT

    def _print(self, text: str) -> None:
        from rich.text import Text

        shown = harmless(text)
        if shown:
            self._console.print(Text(shown, style="dim"), end="")
            self._open = not shown.endswith("\n")
