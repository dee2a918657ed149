"""Versions to test with, as pip takes them: those of both pyproject.toml, the lowest or the newest.

``python tests/versions.py lowest`` prints ``numba==0.60`` for ``numba>=0.60``; ``newest`` prints
``numba`` alone, without pins and upper bounds, too. What follows a ``;`` stays. It needs Python
alone, since it says what an environment is made of.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
OWN = {"meshprep": ROOT, "meshprep-runtime": ROOT / "runtime"}
# A name with extras, where it has any; versions; a marker.
REQUIREMENT = re.compile(r"([\w.-]+)(?:\[([\w,-]+)\])?\s*([^;]*?)\s*(;.*)?")


def requirements(distribution: str, *extras: str) -> dict[str, str]:
    """What a distribution and some of its extras need, by name, with what our own need in turn."""
    project = tomllib.loads((OWN[distribution] / "pyproject.toml").read_text())["project"]
    optional, found = project["optional-dependencies"], {}
    for text in [*project["dependencies"], *(text for e in extras for text in optional[e])]:
        name, inner, _, marker = REQUIREMENT.fullmatch(text).groups()
        if name not in OWN:
            found.setdefault(name, text)
            continue
        for other, needed in requirements(name, *inner.split(",")).items():
            found.setdefault(other, f"{needed}{marker or ''}")
    return found


def lowest(text: str) -> str:
    """A requirement that takes the lowest version which is declared."""
    return text.replace(">=", "==", 1)


def newest(text: str) -> str:
    """A requirement that takes any version."""
    name, extras, _, marker = REQUIREMENT.fullmatch(text).groups()
    return name + (f"[{extras}]" if extras else "") + (marker or "")


if __name__ == "__main__":
    kind = {"lowest": lowest, "newest": newest}[sys.argv[1]]
    print(*map(kind, requirements("meshprep", "test").values()), sep="\n")  # noqa: T201
