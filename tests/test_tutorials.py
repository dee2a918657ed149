"""The tutorials, followed word by word in an empty folder: their files, their commands, no more."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pages import DOCS, steps

ROOT = Path(__file__).parents[1]
# What each page says at its end, and what it needs besides Python.
PAGES = {
    "finite-volume": ("sum of what flowed", ("g++", "pkg-config")),
    "finite-elements": ("largest error", ()),
    "ranks": ("4 ranks: heat", ("mpiexec",)),
    "unchanged": ("cells", ()),
    "../solvers/c": ("peak", ("gcc", "g++", "pkg-config")),
    "../gallery": ("reuse", ()),
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


@pytest.mark.slow
@pytest.mark.parametrize(
    "notebook", sorted(DOCS.glob("notebooks/*.ipynb")), ids=lambda p: p.stem
)
def test_a_notebook_runs_from_top_to_bottom(notebook, capsys):
    """With a smaller mesh; the site shows it as it runs when the pages are built."""
    scope = {}
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            assert not cell["outputs"]
            exec("".join(cell["source"]).replace("200_000", "2_000"), scope)
    assert "largest" in capsys.readouterr().out
    assert abs(scope["now"].sum() - scope["start"].sum()) < 1e-8
