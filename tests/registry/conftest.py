"""Packages that add to meshprep, written beside the tests and put on the path."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "CONTRIBUTING.md"

METADATA = """\
Metadata-Version: 2.1
Name: {name}
Version: 1.0
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Call ``install(package, module, text, entry_points)`` for a package that Python finds."""
    modules = []

    def write(package, module, text, entry_points):
        folder = tmp_path / package
        metadata = folder / f"{module}-1.0.dist-info"
        metadata.mkdir(parents=True)
        (folder / f"{module}.py").write_text(text, encoding="utf-8")
        (metadata / "METADATA").write_text(METADATA.format(name=package), encoding="utf-8")
        (metadata / "entry_points.txt").write_text(entry_points, encoding="utf-8")
        monkeypatch.syspath_prepend(str(folder))
        modules.append(module)

    yield write
    for module in modules:
        sys.modules.pop(module, None)


@pytest.fixture
def story():
    """Call ``story(title)`` for the modules and entry points that a section has one write."""

    def read(title):
        guide = GUIDE.read_text(encoding="utf-8")
        section = guide.partition(f"## {title}\n")[2].partition("\n## ")[0]
        modules = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
        (declared,) = re.findall(r"```toml\n(.*?)```", section, re.DOTALL)
        return modules, declared

    return read


@pytest.fixture
def entry_points_text():
    """Call it with part of a pyproject.toml for what an installer makes of entry points."""

    def convert(declared):
        groups = tomllib.loads(declared)["project"]["entry-points"]
        lines = []
        for group, points in groups.items():
            lines.append(f"[{group}]")
            lines += [f"{name} = {place}" for name, place in points.items()]
        return "\n".join(lines) + "\n"

    return convert
