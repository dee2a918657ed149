"""The last lines of a run of the tests."""

import subprocess
import sys

from skips import missing

TESTS = """
import pytest

def test_readers():
    pytest.importorskip("vtk_of_nobody")

@pytest.mark.parametrize("n", range(3))
def test_gpu(n):
    pytest.skip("no CUDA device on this machine")

@pytest.mark.skip(reason="root may read everything")
def test_root():
    pass

def test_passes():
    pass
"""


def test_reasons_are_grouped_by_what_helps():
    reasons = [
        "Skipped: could not import 'vtk': No module named 'vtk'",
        "Skipped: could not import 'cupy': No module named 'cupy'",
        "Skipped: no CUDA device on this machine",
        "Skipped: needs fork",
        "Skipped: no compiler 'g++' on this machine",
    ]
    assert missing(reasons) == [
        "2 need a GPU: make check-gpu",
        "1 need VTK and Gmsh: make readers",
        "1 needs fork",
        "1 need a C++ compiler: apt-get install g++",
    ]
    assert missing([]) == []


def test_a_run_ends_with_them(tmp_path, pytestconfig):
    path = tmp_path / "test_some.py"
    path.write_text(TESTS)
    conftest = pytestconfig.rootpath / "tests" / "conftest.py"
    code = (
        "import importlib.util as u, pytest, sys;"
        "s = u.spec_from_file_location('ours', sys.argv[1]); m = u.module_from_spec(s);"
        "s.loader.exec_module(m);"
        "p = type('Summary', (), {'pytest_terminal_summary':"
        " staticmethod(m.pytest_terminal_summary)});"
        "pytest.main(['-q', '-p', 'no:cacheprovider', sys.argv[2]], plugins=[p])"
    )
    words = [sys.executable, "-c", code, str(conftest), str(path)]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    lines = [line for line in done.stdout.splitlines() if line.startswith("skipped: ")]
    assert lines == [
        "skipped: 3 need a GPU: make check-gpu",
        "skipped: 1 need VTK and Gmsh: make readers",
        "skipped: 1 root may read everything",
    ], done.stdout
