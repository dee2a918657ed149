"""What the program does to its own process, and not to that of a caller of ``main``."""

import subprocess
import sys
import threading

import effort
import pytest

from meshprep.kernels import parallel
from meshprep_cli import process
from meshprep_cli.main import main


@pytest.mark.parametrize("own", [True, False])
def test_the_memory_of_callers_is_left_alone(mesh_file, monkeypatch, own):
    kept, at_exit = [], []
    monkeypatch.setattr(process, "_own", threading.Event())
    monkeypatch.setattr(process.atexit, "register", at_exit.append)
    monkeypatch.setattr(process.gc, "set_threshold", at_exit.append)
    around = {k: v for k, v in process.os.environ.items() if k != "OPENBLAS_NUM_THREADS"}
    monkeypatch.setattr(process.os, "environ", around)
    monkeypatch.setattr(parallel, "keep_freed", lambda: kept.append(True))
    words = ["plan", str(mesh_file), "-q", "--force"]
    monkeypatch.setattr(sys, "argv", ["meshprep", *words])
    for _ in range(2):
        assert (main() if own else main(words)) == 0
    assert kept == [True, True] * own
    assert at_exit == [1_000_000, process.gc.freeze] * own
    assert ("OPENBLAS_NUM_THREADS" in around) == own


def test_the_program_as_a_module():
    words = [sys.executable, "-m", "meshprep_cli", "info", "missing.msh"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "meshprep: error: missing.msh: does not exist: check the name\n"


def ask(closed, *words):
    """The program in a shell that closes standard streams."""
    line = [sys.executable, "-m", "meshprep_cli", *map(str, words)]
    shell = ["sh", "-c", f'exec "$0" "$@" {closed}', *line]
    done = subprocess.run(shell, capture_output=True, text=True)
    assert "fault" not in done.stderr
    assert "Traceback" not in done.stderr
    return done


ALL = "<&- >&- 2>&-"
SOME = [">&-", "2>&-", "2>/dev/full"]
CLOSED = effort.first([ALL, *SOME])


@pytest.mark.parametrize("closed", CLOSED)
def test_standard_streams_that_are_closed(mesh_file, closed):
    shown = ask(closed, "info", mesh_file)
    assert (shown.returncode, bool(shown.stdout)) == (
        0,
        ">&-" not in closed.replace("2>&-", ""),
    )
    missing = ask(closed, "info", "missing.msh")
    assert (missing.returncode, "does not exist" in missing.stderr) == (
        2,
        "2>" not in closed,
    )


@pytest.mark.slow
@pytest.mark.parametrize("closed", [ALL, *SOME])
def test_files_take_no_number_of_a_stream_that_is_closed(mesh_file, closed):
    assert ask(closed, "reorder", mesh_file, "--force").returncode == 0
    plan = mesh_file.with_name("wing.plan.h5")
    assert ask(closed, "check", plan, "--mesh", mesh_file).returncode == 0


def test_a_caller_without_streams(mesh_file, monkeypatch):
    """As in programs with windows, which have none."""
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    assert main(["info", str(mesh_file)]) == 0
    assert main(["info", "missing.msh"]) == 2
    assert (sys.stdin, sys.stdout, sys.stderr) == (None, None, None)
