"""`[callbacks]` in the config (T-4, O-2): a secret that is never shown."""

from pathlib import Path

import pytest

from headway.config import ConfigRefused, check_settings, load, shown
from headway.config.environment import settings_from
from headway.model.errors import InvalidInput
from headway.model.settings import CallbackSettings, Settings
from headway.model.time import SECOND

SECRET = "words that only two know"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def written(text: str) -> None:
    Path("headway.toml").write_text(text, encoding="utf-8")


def test_o2_callbacks_are_set_in_the_file_and_the_environment() -> None:
    written(f'[callbacks]\nsecret = "{SECRET}"\nprivate = true\ntimeout = "3s"\n')
    config = load(None, {"HEADWAY_CALLBACKS_TIMEOUT": "4s"})
    assert config.settings.callbacks == CallbackSettings(SECRET, private=True, timeout=4 * SECOND)
    library = settings_from(
        {"HEADWAY_CALLBACKS_SECRET": SECRET, "HEADWAY_CALLBACKS_PRIVATE": "true"}
    )
    assert library.callbacks == CallbackSettings(SECRET, private=True)
    assert load(None, {"HEADWAY_CALLBACKS_SECRET": ""}).settings.callbacks.secret == SECRET


def test_o4_the_secret_is_not_shown() -> None:
    told = {one.key: one for one in shown(load(None, {"HEADWAY_CALLBACKS_SECRET": SECRET}))}
    secret = told["callbacks.secret"]
    assert (secret.value, secret.source) == ("***", "HEADWAY_CALLBACKS_SECRET")
    assert all(one.live for key, one in told.items() if key.startswith("callbacks."))
    assert SECRET not in repr(tuple(told.values()))
    unset = {one.key: one.value for one in shown(load(None, {}))}
    assert unset["callbacks.secret"] == ""


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("secret = 8472387", "secret"),
        ('secret = "a\\u0000b"', "secret"),
        ('private = "yes"', "private"),
        ('timeout = "1m"', "timeout"),
        ("timeout = 0", "timeout"),
        ("secrets = 1", "secrets"),
    ],
)
def test_o2_what_is_wrong_is_named_and_a_secret_is_not_told(line: str, field: str) -> None:
    written(f"[callbacks]\n{line}\n")
    with pytest.raises((ConfigRefused, InvalidInput)) as refused:
        load(None, {})
    assert f"callbacks.{field}" in str(refused.value)
    assert "8472387" not in str(refused.value)


def test_settings_of_code_are_checked_too() -> None:
    wrong = Settings(callbacks=CallbackSettings(secret=7))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="callbacks"):
        check_settings(wrong)
