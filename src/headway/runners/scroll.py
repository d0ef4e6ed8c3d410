"""What is new in a pane: from one look at its text to the next.

A pane is not a stream. Lines above the cursor stay, as long as the program only writes on; but it may also clear
the screen or draw over it, and tmux forgets the oldest lines. So what is told of a pane is each line once, when it
is whole, and what comes to the line that the cursor is in. A line that is drawn over later is not told again.
"""

from collections.abc import Sequence

LOST = "…\n"
"""Told in place of lines that tmux forgot before anybody looked."""
_ENOUGH = 30
"""So many equal lines in a row are taken for the same ones."""


class Scroll:
    """Remembers what was told of a pane."""

    def __init__(self) -> None:
        self._told: Sequence[str] = ()
        """The whole lines of the last look."""
        self._begun = ""
        """What was told of the line that the cursor was in."""

    def news(
        self, lines: Sequence[str], *, ended: bool, full: bool = False, last: bool = False
    ) -> str:
        """What to tell of these lines, which are all that the pane has.

        `ended`: the last of them is whole. `full`: tmux may have forgotten the first ones since the last look.
        `last`: this is the last look.
        """
        whole = lines if ended else lines[:-1]
        at = self._where(whole, full)
        text = LOST if at is None else ""
        for line in whole[at or 0 :]:
            text += f"{self._rest(line, closes=True)}\n"
            self._begun = ""
        if not ended and lines:
            text += self._rest(lines[-1], closes=last)
        self._told = whole
        return text

    def _rest(self, line: str, *, closes: bool) -> str:
        """What was not told of a line yet. One that was drawn over is told once nothing changes any more."""
        if line.startswith(self._begun):
            rest = line[len(self._begun) :]
        elif closes:
            rest = f"\n{line}"
        else:
            return ""
        self._begun = line
        return rest

    def _where(self, lines: Sequence[str], full: bool) -> int | None:
        """From which line on nothing was told; None: what was told last is not there any more."""
        told = self._told
        if full:
            return _after(told, lines)
        if len(lines) >= len(told):
            return len(told)
        # The screen was cleared: what stayed was told.
        pairs = zip(told, lines, strict=False)
        return next((at for at, (old, new) in enumerate(pairs) if old != new), len(lines))


def _after(told: Sequence[str], lines: Sequence[str]) -> int | None:
    """Where the old lines end among the new ones, of which the first may be missing."""
    for gone in range(len(told)):
        same = min(len(told) - gone, len(lines), _ENOUGH)
        if same and told[gone : gone + same] == lines[:same]:
            return min(len(told) - gone, len(lines))
    return None if told else 0
