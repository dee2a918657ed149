"""The tutorials, followed word by word in an empty folder: their files, their commands, no more."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pages import steps

ROOT = Path(__file__).parents[1]
# What each page says at its end, and what it needs besides Python.
PAGES = {
    "finite-volume": ("sum of what flowed", ("g++", "pkg-config")),
    "finite-elements": ("largest error", ()),
    "ranks": ("4 ranks: heat", ("mpiexec",)),
    "unchanged": ("cells", ()),
    "../solvers/c": ("cell 0 gets -", ("gcc", "g++", "pkg-config")),
    "../solvers/fortran": ("edges on top", ("gcc", "gfortran", "pkg-config")),
}


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_a_tutorial_as_it_stands(page, tmp_path):
    said, needed = PAGES[page]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    if missing := [tool for tool in needed if shutil.which(tool, path=path) is None]:
        pytest.skip(f"needs {', '.join(missing)}")
    script = ["set -eu"]
    for name, content in steps(f"tutorials/{page}.md"):
        if name:
            (tmp_path / name).write_text(content)
        else:
            script.append(content.replace("/path/to/meshprep", str(ROOT)))
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=tmp_path,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert said in done.stdout
