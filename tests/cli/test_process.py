"""What the program does to its own process, and not to that of a caller of ``main``."""

import subprocess
import sys
import threading

import pytest

from meshprep.kernels import memory
from meshprep_cli import process
from meshprep_cli.main import main


@pytest.mark.parametrize("own", [True, False])
def test_the_memory_of_callers_is_left_alone(mesh_file, monkeypatch, own):
    kept, at_exit = [], []
    monkeypatch.setattr(process, "_own", threading.Event())
    monkeypatch.setattr(process.atexit, "register", at_exit.append)
    monkeypatch.setattr(memory, "keep_freed", lambda: kept.append(True))
    words = ["plan", str(mesh_file), "-q", "--force"]
    monkeypatch.setattr(sys, "argv", ["meshprep", *words])
    for _ in range(2):
        assert (main() if own else main(words)) == 0
    assert kept == [True, True] * own
    assert at_exit.count(process.gc.freeze) == own


def test_the_program_as_a_module():
    words = [sys.executable, "-m", "meshprep_cli", "info", "missing.msh"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "meshprep: error: missing.msh: does not exist: check the name\n"
