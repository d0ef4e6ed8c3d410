"""What every bench shares: the report, its picture, the results page, the commands."""

from bench.harness.packages import PackageMissing, need
from bench.harness.report import Limit, Op, Peer, Report
from bench.harness.screen import progress

__all__ = ["Limit", "Op", "PackageMissing", "Peer", "Report", "need", "progress"]
