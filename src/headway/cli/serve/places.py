"""Where a server keeps its data unless it is told: SQLite in the user's data folder, which is nobody else's."""

from pathlib import Path

from headway.config.places import data_folder
from headway.model.errors import StoreRefused

_STORE, _DEMO = "headway.db", "demo.db"
_PRIVATE = 0o700


def default_store(*, demo: bool = False) -> str:
    """The address of the store of a server that names none; a demo has one of its own. Makes nothing."""
    return f"sqlite:///{data_folder() / (_DEMO if demo else _STORE)}"


def make_data_folder() -> Path:
    """The folder, made if it is not there; only its owner may look into it."""
    folder = data_folder()
    try:
        folder.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
    except OSError as away:
        advice = "name a store with --store, such as sqlite:///headway.db"
        raise StoreRefused(
            str(folder), f"the folder cannot be made: {away.strerror}", advice
        ) from None
    return folder
