"""The tuner: changes lanes, limits and settings while the node runs, each at once and nothing beside it."""

from collections.abc import Callable

import msgspec

from headway.core.kernel import Kernel
from headway.model.errors import InvalidInput, UnknownName
from headway.model.run import LaneName
from headway.model.settings import DEFAULT_LANES, LANE_ALIASES, LaneSettings, Limits
from headway.ports import Clock, Store
from headway.runtime.herald import Herald


class Tuner:
    """Tells the kernel and, where they count for all nodes, the store."""

    def __init__(
        self,
        kernel: Kernel,
        store: Store,
        clock: Clock,
        herald: Herald,
        wake: Callable[[], None],
    ) -> None:
        self._kernel = kernel
        self._store = store
        self._clock = clock
        self._herald = herald
        self._wake = wake
        self._paused: dict[LaneName, LaneSettings] = {}
        """What lanes that were paused by hand go back to."""

    def set_lane(self, name: LaneName, change: int | LaneSettings) -> None:
        """A number changes only the width; reserve and budget stay. A paused lane is paused no longer."""
        known = self._paused.pop(LANE_ALIASES.get(name, name), None)
        if isinstance(change, LaneSettings):
            settings = change
        else:
            lane = self._kernel.stage.floor.lanes.get(LANE_ALIASES.get(name, name))
            if known is None:
                known = LaneSettings(change) if lane is None else lane.settings
            reserve = min(known.reserve, change)
            settings = msgspec.structs.replace(known, width=change, reserve=reserve)
        self._apply(name, settings)

    def reset_lane(self, name: LaneName, settings: LaneSettings) -> None:
        """The lane's settings are others now. If it is paused it stays so, and goes back to these."""
        key = LANE_ALIASES.get(name, name)
        if key in self._paused:
            self._paused[key] = settings
            settings = msgspec.structs.replace(settings, width=0, reserve=0)
        self._apply(name, settings)

    def pause_lane(self, name: LaneName) -> None:
        """Nothing more starts in it. Pausing it again changes nothing."""
        settings = self._settings(name)
        if settings.width:
            self._paused[LANE_ALIASES.get(name, name)] = settings
            self._apply(name, msgspec.structs.replace(settings, width=0, reserve=0))

    def resume_lane(self, name: LaneName) -> None:
        """It is as wide as before; one whose width was set to 0, as its settings or else the defaults say."""
        settings = self._settings(name)
        if settings.width:
            return
        key = LANE_ALIASES.get(name, name)
        before = self._paused.pop(key, None) or self._kernel.stage.settings.lanes.get(key)
        if before is None or not before.width:
            before = DEFAULT_LANES.get(key)
        if before is None:
            what = "one that had a width before; give it one with set_lane"
            raise InvalidInput("lane", name, what)
        self._apply(name, before)

    def clear_lane(self, name: LaneName) -> int:
        self._settings(name)
        ended = self._kernel.clear_lane(name, self._clock.now())
        self._herald.lane_cleared(name, ended)
        self._wake()
        return ended

    def set_limits(self, limits: Limits) -> None:
        self._kernel.set_limits(limits, self._clock.now())
        self._store.set_limits(limits)
        self._herald.limits_changed(limits)
        self._wake()

    def _settings(self, name: LaneName) -> LaneSettings:
        lanes = self._kernel.stage.floor.lanes
        lane = lanes.get(LANE_ALIASES.get(name, name))
        if lane is None:
            raise UnknownName("lane", name, lanes)
        return lane.settings

    def _apply(self, name: LaneName, settings: LaneSettings) -> None:
        self._kernel.set_lane(name, settings, self._clock.now())
        self._herald.lane_changed(name, settings)
        self._wake()
