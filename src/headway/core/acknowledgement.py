"""The token by which an agent says that all is well, found and taken out of a reply (H-3)."""

import re
from unicodedata import category, combining

TOKEN = "HEARTBEAT_OK"
"""What an agent answers when nothing needs attention. In capitals only: `heartbeat_ok` is text."""

_TOKEN = re.compile(r"HEARTBEAT\\?_OK")
_TAG = r"</?[A-Za-z][A-Za-z0-9]*(?:\s[^<>]{0,200})?/?>"
_ENTITY = r"&(?:[A-Za-z]{2,8}|\#[0-9]{1,6});"
_EDGE = re.compile(
    rf"""(?:
      {_TAG} | {_ENTITY}
    | (?:`{{3}}|~{{3}})[\w+.-]+[^\S\n]*\n   # a fence that names a language
    | (?<!\S)[0-9]{{1,3}}[.)](?=\s)        # a number of a list
    | \[[xX]\](?=\s)                      # a box that is ticked
    | \W | _
    )*+""",
    re.VERBOSE,
)
"""What may stand between the token and the edge of a reply: whatever has no letter and no digit, and markup."""
_MARKUP = re.compile(rf"{_TAG}|{_ENTITY}")
_CLOSING_TAG = re.compile(r"</([A-Za-z][A-Za-z0-9]*)\s*>")
_OPENING_TAG = re.compile(r"<([A-Za-z][A-Za-z0-9]*)(?:\s[^<>]{0,200})?>")
_FENCE = re.compile(r"(`{3,}|~{3,})[\w+.-]*\Z")
_LONGEST_FENCE = 64
_MARKS = "*_~`\"'|="
"""What closes with the character that opened it. Brackets and quotes Unicode knows."""
_OPENING = frozenset({"Ps", "Pi", "Pf"})
_CLOSING = frozenset({"Pe", "Pf", "Pi"})
_LINE_MARKER = re.compile(r"\s*(?:[>+•#-]+|\*(?=\s)|[0-9]{1,3}[.)](?=\s))\s*(?:\[[ xX]?\]\s*)?")
_STOPS = r".,;:!?…–—\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f"
_PUNCTUATION = re.compile(rf"[{_STOPS}]+|-+(?=\s|\Z)|[^\S\n]+[{_STOPS}|-]+(?=\s|\Z)")
_LINE_END = re.compile(r"[^\S\n]*(?:\n|\Z)")
_GAP = re.compile(r"[^\S\n]*(?:\n[^\S\n]*(?=\n))*+\n?")
_RULE = re.compile(r"[^\S\n]*(?:-{3,}|\*{3,}|_{3,})[^\S\n]*")
INVISIBLE = "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
"""Characters that have no width: an agent may set them, and nobody sees them."""
_MOST_TOKENS = 8
_DEEPEST = 24
"""Bounds, so that a reply of a million stars is judged as fast as any other."""


def without_token(reply: str) -> str | None:
    """What a reply says beside the token, or None if the token is neither at its start nor at its end (H-3).

    Start and end are where no letter and no digit come before or after, markup aside. With the token goes
    what belongs to it: markup and quotes that are around it alone, and the punctuation behind it. As a part of a
    longer word (`HEARTBEAT_OKAY`, `NOT_HEARTBEAT_OK`) it is not the token.
    """
    rest = _without_one(reply.strip().strip(INVISIBLE).strip())
    if rest is None:
        return None
    for _ in range(_MOST_TOKENS - 1):
        shorter = _without_one(rest)
        if shorter is None:
            break
        rest = shorter
    return "" if _says_nothing(rest) else rest


def _without_one(text: str) -> str | None:
    found = list(_TOKEN.finditer(text))
    if not found:
        return None
    left, right = text[: found[0].start()], text[found[0].end() :]
    if _EDGE.fullmatch(left) and not _in_a_word(left, right):
        left, right = _unwrapped(left, right)
        return (left + _trimmed_start(right)).strip("\n").rstrip()
    left, right = text[: found[-1].start()], text[found[-1].end() :]
    if _EDGE.fullmatch(right) and not _in_a_word(left, right):
        left, right = _unwrapped(left, right)
        return (_trimmed_end(left) + right).strip("\n").rstrip()
    return None


def _in_a_word(left: str, right: str) -> bool:
    """Whether a word goes on before or after the token, also over a hyphen, a slash or an apostrophe."""
    before, after = left.rstrip("_")[-2:], right.lstrip("_")[:2]
    if _is_lettered(before[-1:]) or _is_lettered(after[:1]) or (after and combining(after[0])):
        return True
    if before[-1:] in tuple("-/'’") and _is_lettered(before[:-1]):
        return True
    if after[:1] == ".":
        # `HEARTBEAT_OK.md` is a name of a file, `HEARTBEAT_OK.All is well` lacks but a space.
        return after[1:].islower() or after[1:].isdigit()
    return after[:1] in tuple("-/'’") and _is_lettered(after[1:])


def _is_lettered(character: str) -> bool:
    """Letters of scripts without capitals make no longer word: Chinese has no spaces between words."""
    return character.isdigit() or character.lower() != character.upper()


def _unwrapped(left: str, right: str) -> tuple[str, str]:
    """Both sides without what was around the token alone, and without the punctuation behind it."""
    for _ in range(_DEEPEST):
        punctuation = _PUNCTUATION.match(right)
        if punctuation is not None:
            right = right[punctuation.end() :]
        inner = _without_lines(left, right) or _without_pair(left, right)
        if inner is None:
            break
        left, right = inner
    return left, right


def _without_lines(left: str, right: str) -> tuple[str, str] | None:
    """Wrappings that may be on lines of their own: tags, fences, and the marker of a list or heading."""
    opened, closed = left.rstrip(), right.lstrip()
    fence_at = max(opened.rfind("\n") + 1, len(opened) - _LONGEST_FENCE)
    if (tag := _CLOSING_TAG.match(closed)) is not None:
        opening = _OPENING_TAG.fullmatch(opened, max(0, opened.rfind("<")))
        if opening is not None and opening[1].lower() == tag[1].lower():
            return opened[: opening.start()], closed[tag.end() :]
    elif (fence := _FENCE.search(opened, fence_at)) is not None and closed.startswith(fence[1]):
        return opened[: fence.start()], closed[len(fence[1]) :]
    elif _LINE_END.match(right) and _LINE_MARKER.fullmatch(left, left.rfind("\n") + 1):
        return left[: left.rfind("\n") + 1], right
    return None


def _without_pair(left: str, right: str) -> tuple[str, str] | None:
    """Wrappings of one character on each side, on the token's line."""
    opened, closed = left.rstrip(" \t"), right.lstrip(" \t")
    if not opened or not closed or not _closes(opened[-1], closed[0]):
        return None
    if closed != right and closed.lstrip(closed[0])[:1].isalnum():
        # After a space and before a letter it opens what follows.
        return None
    return opened[:-1], closed[1:]


def _closes(opener: str, closer: str) -> bool:
    if closer in _MARKS:
        return opener == closer
    if closer == ">":
        return opener == "<"
    return category(opener) in _OPENING and category(closer) in _CLOSING


def _trimmed_start(text: str) -> str:
    """Without the blank lines, and a line across the page, that set it apart from the token."""
    text = _GAP.sub("", text, count=1)
    line, _, below = text.partition("\n")
    return _GAP.sub("", below, count=1) if _RULE.fullmatch(line) else text


def _trimmed_end(text: str) -> str:
    """Without what led over to the token: a dash or colon on its line, or a line across the page above it."""
    text = text.rstrip(" \t").rstrip("-–—|,:").rstrip()
    above, _, line = text.rpartition("\n")
    return above.rstrip() if _RULE.fullmatch(line) else text


def _says_nothing(text: str) -> bool:
    return all(
        character in "`~+|=^$<>" or category(character)[0] in "PZC"
        for character in _MARKUP.sub("", text)
    )
