"""Who is asked: a server or a store, by flags and by the environment."""

import pytest

from headway.cli.options import Place, place_of
from headway.model.errors import InvalidInput

DEFAULT = "http://127.0.0.1:8787"


@pytest.fixture(autouse=True)
def _nothing_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HEADWAY_SERVER", "HEADWAY_STORE", "HEADWAY_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def test_without_a_word_the_server_of_this_machine_is_asked() -> None:
    assert place_of(None, None) == Place(None, DEFAULT, None)


def test_flags_win_over_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_SERVER", "http://env")
    monkeypatch.setenv("HEADWAY_STORE", "sqlite:///env.db")
    monkeypatch.setenv("HEADWAY_TOKEN", "hw_env_x")
    assert place_of("http://flag", "hw_flag_x") == Place(None, "http://flag", "hw_flag_x")
    assert place_of(None, None, "sqlite:///flag.db").store == "sqlite:///flag.db"


def test_a_server_in_the_environment_wins_over_a_store_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A store in the environment is for servers too; a server there is for nobody but clients."""
    monkeypatch.setenv("HEADWAY_STORE", "sqlite:///env.db")
    assert place_of(None, None) == Place("sqlite:///env.db", DEFAULT, None)
    monkeypatch.setenv("HEADWAY_SERVER", "http://env")
    assert place_of(None, None) == Place(None, "http://env", None)


def test_both_by_flags_are_refused() -> None:
    with pytest.raises(InvalidInput, match="--store"):
        place_of("http://flag", None, "sqlite:///flag.db")
