"""Where on this machine a user's files are: the config file, and the data of a server that names no store."""

from collections.abc import Mapping
from pathlib import Path

from headway.config.environment import CONFIG_VARIABLE
from headway.model.errors import InvalidInput

FILE_NAME = "headway.toml"
_APP = "headway"


def find_file(named: str | None, environment: Mapping[str, str]) -> Path | None:
    """The config file: the one that was named, else that of this folder, else the user's, else none.

    One that was named must be there; the others need not.
    """
    field = "--config"
    if named is None:
        named, field = environment.get(CONFIG_VARIABLE) or None, CONFIG_VARIABLE
    if named is not None:
        path = _named(named)
        if path is None:
            raise InvalidInput(field, named, "the path of a config file that is there")
        return path
    return next(
        (path for path in (Path(FILE_NAME), config_folder() / FILE_NAME) if _is_there(path)), None
    )


def _named(written: str) -> Path | None:
    try:
        path = Path(written).expanduser()
        return path if path.exists() and not path.is_dir() else None
    except (OSError, RuntimeError):
        # A folder that may not be looked into, a name too long to be one, no such user.
        return None


def _is_there(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def config_folder() -> Path:
    """Where the user's own config file is, on a system of this kind."""
    import platformdirs  # noqa: PLC0415 - slow to import, and a library's Headway() reads no file

    return platformdirs.user_config_path(_APP, appauthor=False)


def data_folder() -> Path:
    """Where a server keeps its store unless it is told otherwise."""
    import platformdirs  # noqa: PLC0415 - as above

    return platformdirs.user_data_path(_APP, appauthor=False)
