"""How long the store takes is told to whoever measures, and to nobody else (O-3)."""

import asyncio
from pathlib import Path

from headway import Headway
from tests.unit.runtime.worlds import Recorder


def test_o3_the_meter_is_told_of_every_admission_and_every_batch(tmp_path: Path) -> None:
    async def main() -> None:
        measured: list[tuple[str, float]] = []
        hw = Headway(f"sqlite:///{tmp_path / 'headway.db'}")
        hw.agent("a")(Recorder(takes=0))
        async with hw:
            assert hw.engine.meter is None
            assert await hw.send("a", "before") == "re: before"
            hw.engine.meter = lambda operation, seconds: measured.append((operation, seconds))
            assert await hw.send("a", "x") == "re: x"
            await hw.submit_all("a", [{"task": {"action": "y"}}], atomic=True)
            hw.engine.meter = None
            await hw.send("a", "after")
        assert [operation for operation, _ in measured].count("admit") == 2
        assert "record" in {operation for operation, _ in measured}
        assert all(0 < seconds < 60 for _, seconds in measured)

    asyncio.run(main())
