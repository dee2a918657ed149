"""Run the program in process, as a user would type it."""

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
def mesh_file(cli, tmp_path):
    """A shuffled Delaunay mesh of about 300 triangles."""
    path = tmp_path / "wing.msh"
    assert cli("generate", "delaunay2d", "--cells", 300, "-o", path, "-q")[0] == 0
    return path
