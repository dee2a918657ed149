"""Who made a plan, when, and with what: recorded in every plan and benchmark."""

import platform
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

PACKAGES = ("meshprep", "numpy", "scipy", "numba", "h5py", "meshio", "pymetis")


def about() -> dict[str, Any]:
    """Creator, time in UTC and versions, as JSON values."""
    versions = {"python": platform.python_version()}
    versions |= {name: _version(name) for name in PACKAGES}
    return {
        "creator": f"meshprep {versions['meshprep']}",
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions,
    }


@cache
def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
