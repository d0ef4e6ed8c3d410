"""The config of a running server: as it was read, and read again on SIGHUP or `POST /config/reload`."""

from collections.abc import Callable

from headway.cli.serve.overlay import overlay
from headway.config import Config, Shown, shown
from headway.facade import Headway
from headway.logs import Log
from headway.model.server import ServerSettings
from headway.model.settings import Settings
from headway.model.views import Reloaded


class LiveConfig:
    """What counts now, and the way to what the file says now. A file that is wrong changes nothing (O-2)."""

    def __init__(self, headway: Headway, config: Config, again: Callable[[], Config]) -> None:
        """`again` reads it anew, from the same places."""
        self._headway = headway
        self._code: Settings = headway.settings
        """What the user's own module said, before any config."""
        self._begun_with = config
        """What counts where a new start is needed, whatever the file says since."""
        self._config = config
        self._again = again
        self._log: Log | None = None
        headway.reload(self._settings(config))

    def use_log(self, log: Log) -> None:
        """The log whose level is part of the config."""
        self._log = log

    @property
    def file(self) -> str:
        """The file that was read last; empty if there is none."""
        return self._config.file

    @property
    def server(self) -> ServerSettings:
        """Where it listens and what it lets in: decided at the start."""
        return self._begun_with.server

    def shown(self) -> tuple[Shown, ...]:
        """Every key with the value that counts and where that comes from, without passwords."""
        begun = {one.key: one for one in shown(self._begun_with) if not one.live}
        return tuple(begun.get(one.key, one) for one in shown(self._config))

    async def reload(self) -> Reloaded:
        """Apply what has changed and can be applied; the rest counts from the next start."""
        fresh = self._again()
        done = self._headway.reload(self._settings(fresh))
        changed, restart = (
            done.changed,
            (*done.needs_restart, *_server_changes(self._begun_with, fresh)),
        )
        level = fresh.server.log.level
        if self._log is not None and self._log.level is not level:
            self._log.level = level
            changed = (*changed, "log.level")
        self._config = fresh
        return Reloaded(changed, restart)

    def _settings(self, config: Config) -> Settings:
        return overlay(self._code, config)


def _server_changes(before: Config, after: Config) -> tuple[str, ...]:
    """Where it listens and what it lets in is decided at the start."""
    changed = ["store"] if before.store != after.store else []
    changed += [
        f"server.{field}"
        for field in ServerSettings.__struct_fields__
        if field != "log" and getattr(before.server, field) != getattr(after.server, field)
    ]
    log, new_log = before.server.log, after.server.log
    changed += [
        f"log.{field}"
        for field in log.__struct_fields__
        if field != "level" and getattr(log, field) != getattr(new_log, field)
    ]
    return tuple(changed)
