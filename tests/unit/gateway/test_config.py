"""The config of a running server over HTTP: shown, and read again (O-2)."""

import pytest

from headway import Headway
from headway.config import Shown
from headway.gateway import build_app
from headway.model.errors import InvalidInput
from headway.model.views import Reloaded
from headway.testing import virtual_time
from tests.unit.gateway.asking import bearing, refusal
from tests.unit.gateway.calling import client, served


class OneLane:
    """A config with one key, whose file is wrong from the second reading on."""

    def __init__(self) -> None:
        self.read = 0

    def shown(self) -> tuple[Shown, ...]:
        return (Shown("lanes.main.width", 30, "headway.toml line 2", "HEADWAY_LANE_MAIN", True),)

    async def reload(self) -> Reloaded:
        self.read += 1
        if self.read > 1:
            raise InvalidInput("lanes.main", "wide", "a whole number")
        return Reloaded(("lanes.main",), ("server.port",))


@virtual_time
async def test_o2_the_config_is_shown_with_where_it_comes_from() -> None:
    hw = Headway()
    async with hw, build_app(hw, config=OneLane()) as gateway, client(gateway) as http:
        assert (await http.get("/config")).json() == {
            "settings": [
                {
                    "key": "lanes.main.width",
                    "value": 30,
                    "source": "headway.toml line 2",
                    "variable": "HEADWAY_LANE_MAIN",
                    "live": True,
                }
            ]
        }


@virtual_time
async def test_o1_a_reload_says_what_changed_and_a_bad_file_is_refused() -> None:
    hw = Headway()
    async with hw, build_app(hw, config=OneLane()) as gateway, client(gateway) as http:
        done = await http.post("/config/reload")
        assert done.json() == {"changed": ["lanes.main"], "needsRestart": ["server.port"]}
        refused = await http.post("/config/reload")
        assert refusal(refused) == (400, "invalid_input")
        assert refused.json()["details"]["field"] == "lanes.main"


@virtual_time
async def test_a_program_that_serves_by_itself_has_no_config() -> None:
    async with served(Headway()) as http:
        assert refusal(await http.get("/config")) == (404, "not_found")
        assert refusal(await http.post("/config/reload")) == (404, "not_found")


@pytest.mark.parametrize(
    ("scope", "agent", "status"),
    [("submit", None, 403), ("admin", "support", 403), ("control", None, 200)],
)
def test_o4_the_config_is_for_who_controls_everything(
    scope: str, agent: str | None, status: int
) -> None:
    @virtual_time
    async def ask() -> None:
        hw = Headway()
        async with (
            hw,
            build_app(hw, config=OneLane()) as gateway,
            bearing(gateway, hw, scope, agent=agent) as http,
        ):
            assert (await http.get("/config")).status_code == status
            assert (await http.post("/config/reload")).status_code == status

    ask()
