"""The same agents where a lane has a limit over all nodes."""

from headway import Headway, LaneSettings
from tests.e2e.agents import walker

LIMIT = 5

hw = Headway(lanes={"narrow": LaneSettings(30, cluster_limit=LIMIT)})
hw.agent("walker")(walker)
