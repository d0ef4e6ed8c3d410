"""What the numbers were measured on."""

import os
import platform
import sqlite3
from importlib import metadata
from pathlib import Path


def describe_machine() -> dict[str, str]:
    """Processor, cores, memory and system, in words a reader can weigh a figure by."""
    return {
        "cpu": _cpu_model(),
        "cores": str(_usable_cores()),
        "memory": _memory(),
        "os": f"{_system()}, {platform.machine()}",
    }


def describe_versions() -> dict[str, str]:
    """The interpreter and the packages that the figures depend on."""
    packages = ("headway", "uvloop", "msgspec", "asyncpg")
    return {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        **{package: _version(package) for package in packages},
        "sqlite": sqlite3.sqlite_version,
    }


def _cpu_model() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name" and value.strip():
                return value.strip()
    return platform.processor() or "unknown"


def _usable_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _memory() -> str:
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return "unknown"
    return f"{total / 2**30:.1f} GiB"


def _system() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (KeyError, OSError):
        return f"{platform.system()} {platform.release()}"


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"
