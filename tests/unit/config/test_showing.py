"""A config as it is shown (O-2): every key, its value, where it comes from, and no password."""

import asyncio

import msgspec
import pytest

from headway import Headway
from headway.config import KEYS, Key, load, shown, without_password
from headway.config.keys import NAMED, OF_RUNNERS, SECTIONS
from headway.model.server import ServerSettings
from headway.model.settings import AgentSettings, Budget, LaneSettings, Settings
from headway.model.views import Reloaded


def test_o2_every_key_is_shown_and_nothing_else() -> None:
    named = {f"lanes.{lane}.{key}" for lane in Settings().lanes for key in NAMED["lanes"]}
    assert {one.key for one in shown(load(None, {}))} == {*KEYS, *named}


def test_o2_a_value_is_shown_as_a_file_holds_it_with_its_source() -> None:
    environment = {"HEADWAY_LEASE": "90s", "HEADWAY_LANE_NIGHT": "2", "HEADWAY_TZ": "Asia/Tokyo"}
    told = {one.key: (one.text, one.source) for one in shown(load(None, environment))}
    assert told["node.lease"] == ('"1m30s"', "HEADWAY_LEASE")
    assert told["lanes.night.width"] == ("2", "HEADWAY_LANE_NIGHT")
    assert told["node.tz"] == ('"Asia/Tokyo"', "HEADWAY_TZ")
    assert told["server.port"] == ("8787", "default")
    assert told["server.requests_per_minute"] == ("", "default")


def test_o4_the_stores_password_is_not_shown() -> None:
    config = load(None, {"HEADWAY_STORE": "postgresql://me:secret@host/db"})
    (store,) = (one for one in shown(config) if one.key == "store")
    assert store.value == "postgresql://me:***@host/db"


@pytest.mark.parametrize(
    ("url", "safe"),
    [
        ("sqlite:///a:b@c.db", "sqlite:///a:b@c.db"),
        ("postgresql://me@host/db", "postgresql://me@host/db"),
        ("postgresql://me:p@ss:w@host:5432/db", "postgresql://me:***@host:5432/db"),
        ("postgresql://:p@host/db", "postgresql://:***@host/db"),
        (
            "postgresql:///db?user=me&password=p%20q&x=1",
            "postgresql:///db?user=me&password=***&x=1",
        ),
        ("", ""),
    ],
)
def test_o4_an_address_is_shown_without_its_password(url: str, safe: str) -> None:
    assert without_password(url) == safe


class TestTable:
    """The table of keys has every field, and nothing else."""

    def test_o2_every_field_is_a_key(self) -> None:
        apart = {"lanes", "queue", "channels", "agents", "runners", "limits", "callbacks", "log"}
        fields = {
            f"{section}.{name}"
            for section, owner in SECTIONS.items()
            for name in owner.__struct_fields__
            if name not in apart
        }
        assert fields | {"store"} == set(KEYS)
        assert set(ServerSettings.__struct_fields__) & apart == {"log"}

    def test_o2_every_field_of_a_lane_and_an_agent_is_a_key(self) -> None:
        for owner, section in ((LaneSettings, "lanes"), (AgentSettings, "agents")):
            fields = {*owner.__struct_fields__, *Budget.__struct_fields__} - {"budget"}
            apart = OF_RUNNERS if section == "agents" else frozenset()
            assert set(NAMED[section]) - apart == fields

    @pytest.mark.parametrize(
        "key", [key for key in KEYS.values() if key.section == "node"], ids=lambda key: key.name
    )
    def test_f1_a_reload_applies_what_the_table_says(self, key: Key) -> None:
        async def main() -> Reloaded:
            async with Headway("memory://", settings=Settings()) as hw:
                changed = {int: 7, float: 0.5, str: "Asia/Tokyo"}[type(key.default)]
                return hw.reload(msgspec.structs.replace(Settings(), **{key.name: changed}))

        reloaded = asyncio.run(main())
        expected = ((key.dotted,), ()) if key.live else ((), (key.dotted,))
        assert (reloaded.changed, reloaded.needs_restart) == expected
