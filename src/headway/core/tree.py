"""A run and all that it started, arranged as a tree."""

from collections.abc import Iterable, Iterator

from headway.model.run import RunId
from headway.model.views import Branch, RunView


def arranged(views: Iterable[RunView], root: RunId) -> tuple[Branch, ...]:
    """Each run behind the one that asked for it, the oldest first, with how deep it stands.

    A run whose parent is not among them, because it is known no longer, stands below the nearest one that is.
    """
    known = {view.id: view for view in views}
    below: dict[RunId, list[RunView]] = {}
    for view in known.values():
        if view.id != root:
            above = (run_id for run_id in reversed(view.run.ancestors) if run_id in known)
            below.setdefault(next(above, root), []).append(view)
    return tuple(_walk(known[root], below)) if root in known else ()


def _walk(root: RunView, below: dict[RunId, list[RunView]]) -> Iterator[Branch]:
    """Not by recursion: agents may delegate deeper than Python can."""
    ahead = [Branch(0, root)]
    while ahead:
        branch = ahead.pop()
        yield branch
        children = below.get(branch.view.id, [])
        ahead += [Branch(branch.depth + 1, child) for child in reversed(children)]
