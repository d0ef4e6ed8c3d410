"""Where benches keep files: a durable figure means something only on a real disk."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_MOUNTS = Path("/proc/mounts")


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder that goes when the bench does."""
    with tempfile.TemporaryDirectory(prefix="headway-bench-") as folder:
        yield Path(folder)


def describe_disk(path: Path) -> str:
    """Which file system a path is on, as far as this machine says."""
    if not _MOUNTS.exists():
        return f"files in {path.parent}"
    mounts = [line.split()[1:3] for line in _MOUNTS.read_text(encoding="utf-8").splitlines()]
    holding = [(point, kind) for point, kind in mounts if path.resolve().is_relative_to(point)]
    point, kind = max(holding, key=lambda mount: len(mount[0]), default=("?", "unknown"))
    warning = " (in memory: figures of durable stores mean nothing here)" if kind == "tmpfs" else ""
    return f"files on {kind} at {point}{warning}"
