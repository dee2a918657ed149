"""Run the program in process, as a user would type it."""

import shutil
import time
from pathlib import Path

import pytest
from numba import get_num_threads, set_num_threads

from meshprep_cli.main import main


@pytest.fixture
def cli(capsys):
    """Call ``cli(*words)`` for exit code, stdout and stderr; ``--threads`` ends with the test."""
    threads = get_num_threads()

    def run(*words):
        code = main([str(w) for w in words])
        out, err = capsys.readouterr()
        return code, out, err

    yield run
    set_num_threads(threads)


@pytest.fixture
def shows(cli):
    """Call ``shows(*words)`` for what a command prints that must succeed."""

    def run(*words):
        code, out, err = cli(*words)
        assert code == 0, err
        return out

    return run


@pytest.fixture
def fails(cli):
    """Call ``fails(*words)`` for the one line of a command that must fail, soon."""

    def run(*words):
        start = time.process_time()
        code, out, err = cli(*words)
        # of the processor, which others may keep busy
        assert time.process_time() - start < 20
        told = ("meshprep: [", "meshprep: compiling")
        lines = [line for line in err.splitlines() if not line.startswith(told)]
        assert (code, out, len(lines)) == (2, "", 1), err
        assert lines[0].startswith("meshprep: error: ")
        return lines[0]

    return run


@pytest.fixture(scope="session")
def generated(tmp_path_factory):
    """A shuffled Delaunay mesh of about 300 triangles, which no test changes."""
    path = tmp_path_factory.mktemp("wing") / "wing.msh"
    assert main(["generate", "delaunay2d", "--cells", "300", "-o", str(path), "-q"]) == 0
    return path


@pytest.fixture
def mesh_file(generated, tmp_path):
    """The mesh, in a folder of the test."""
    return Path(shutil.copy(generated, tmp_path))
