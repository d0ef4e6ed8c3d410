"""Fixtures for runners that start processes."""

from pathlib import Path

import pytest


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Where workers live; not there yet."""
    return tmp_path / "home"
