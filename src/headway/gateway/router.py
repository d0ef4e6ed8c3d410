"""Finds what a path leads to. Paths are taken apart before they are decoded, so a segment may hold a slash."""

from collections.abc import Iterable
from typing import Generic, TypeVar

Target = TypeVar("Target")


class Router(Generic[Target]):
    """A tree of segments. Where a word and a field would both do, the word goes first."""

    def __init__(self, targets: Iterable[tuple[str, Target]]) -> None:
        self._root: _Node[Target] = _Node()
        self._plain: dict[bytes, Target] = {}
        for path, target in targets:
            self._add(path, target)

    def find(self, raw_path: bytes) -> Target | None:
        """What is at a path, as it came: still encoded. Empty segments count for nothing."""
        target = self._plain.get(raw_path)
        if target is not None:
            return target
        return _walk(self._root, [part for part in raw_path.split(b"/") if part], 0)

    def _add(self, path: str, target: Target) -> None:
        node = self._root
        for segment in path.encode().split(b"/"):
            if segment.startswith(b"{"):
                node.field = node = node.field or _Node()
            elif segment:
                node = node.words.setdefault(segment, _Node())
        node.target = target
        if "{" not in path:
            self._plain[path.encode()] = target


class _Node(Generic[Target]):
    __slots__ = ("field", "target", "words")

    def __init__(self) -> None:
        self.words: dict[bytes, _Node[Target]] = {}
        self.field: _Node[Target] | None = None
        self.target: Target | None = None


def _walk(node: _Node[Target], segments: list[bytes], place: int) -> Target | None:
    if place == len(segments):
        return node.target
    for child in (node.words.get(segments[place]), node.field):
        if child is not None:
            found = _walk(child, segments, place + 1)
            if found is not None:
                return found
    return None
