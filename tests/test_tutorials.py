"""The tutorials, followed word by word in an empty folder: their files, their commands, no more."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pages import DOCS, blocks, code_of_notebook, steps

ROOT = Path(__file__).parents[1]
# What each page says at its end, and what it needs besides Python.
PAGES = {
    "finite-volume": ("sum of what flowed", ("g++", "pkg-config")),
    "finite-elements": ("largest error", ()),
    "ranks": ("4 ranks: heat", ("mpiexec",)),
    "unchanged": ("cells", ()),
    "../solvers/c": ("peak", ("gcc", "g++", "pkg-config")),
    "../gallery": ("reuse", ()),
    "../which-order": ("edges->cells", ()),
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
def test_the_page_on_orders_draws_the_pictures_that_it_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (arrays,) = blocks("which-order.md", "py")
    exec(arrays, scope := {})
    assert sorted(scope["ordered"].ordering["points"].new_to_old) == list(range(1500))
    (pictures,) = blocks("which-order.md", "python")
    subprocess.run([sys.executable, "-c", pictures], check=True)
    page = (DOCS / "which-order.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"gallery/(order-\w+\.png)", page))
    assert {path.name for path in tmp_path.iterdir()} == shown
    assert all((DOCS / "gallery" / name).exists() for name in shown)


@pytest.mark.slow
def test_the_notebook_runs_from_top_to_bottom(capsys):
    """With a smaller mesh; the site shows it as it runs when the pages are built."""
    scope = {}
    for source in code_of_notebook("what-a-plan-gains"):
        exec(source.replace("200_000", "2_000"), scope)
    assert "largest" in capsys.readouterr().out
    assert abs(scope["now"].sum() - scope["start"].sum()) < 1e-8


def test_every_notebook_is_run_by_a_test_and_holds_no_output():
    """That of PyVista is run with it, by the driver ``notebook_pyvista``."""
    names = sorted(path.stem for path in DOCS.glob("notebooks/*.ipynb"))
    assert names == ["pyvista", "what-a-plan-gains"]
    for name in names:
        text = (DOCS / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8")
        for cell in json.loads(text)["cells"]:
            assert not cell.get("outputs")
