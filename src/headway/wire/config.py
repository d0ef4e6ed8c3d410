"""The config of a running server, as JSON."""

from collections.abc import Iterable
from typing import Annotated

from msgspec import Meta

from headway.config import Shown
from headway.model.views import Reloaded
from headway.wire.base import Answer


class SettingAnswer(Answer, frozen=True, kw_only=True):
    """One key as it is set."""

    key: Annotated[str, Meta(examples=["lanes.main.width"])]
    value: Annotated[object, Meta(description="As a file would hold it; without passwords.")]
    source: Annotated[
        str, Meta(description="Where it comes from.", examples=["headway.toml line 12"])
    ]
    variable: Annotated[str, Meta(description="The environment variable for it, if there is one.")]
    live: Annotated[bool, Meta(description="Whether a reload applies it.")]


class ConfigAnswer(Answer, frozen=True, kw_only=True):
    """Every key, in the order of the reference page."""

    settings: tuple[SettingAnswer, ...]


class ReloadAnswer(Answer, frozen=True, kw_only=True):
    """What new settings have changed, and what of them waits for a new start."""

    changed: tuple[str, ...]
    needs_restart: tuple[str, ...]


def config_answer(shown: Iterable[Shown]) -> ConfigAnswer:
    return ConfigAnswer(
        settings=tuple(
            SettingAnswer(
                key=one.key,
                value=one.value,
                source=one.source,
                variable=one.variable,
                live=one.live,
            )
            for one in shown
        )
    )


def reload_answer(reloaded: Reloaded) -> ReloadAnswer:
    return ReloadAnswer(changed=reloaded.changed, needs_restart=reloaded.needs_restart)
