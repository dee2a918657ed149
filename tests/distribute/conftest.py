"""A file of 3 and of 5 parts; helpers, such as the slow builder of parts, lie beside the tests."""

import sys
from pathlib import Path

import pytest

from meshprep.distribute.halos import ghosts as halos
from meshprep.distribute.job.run import run
from meshprep.distribute.job.split import SplitOptions
from meshprep.io import write
from meshprep.io.generate import generate

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def mesh_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("parts") / "wing.msh"
    write(generate("delaunay2d", cells=400, seed=0), path)
    return path


@pytest.fixture(scope="session")
def made(mesh_file):
    from parts_files import job

    output = mesh_file.with_name("wing.parts.h5")
    run(job(mesh_file, output, (3, 5)))
    return output


@pytest.fixture(scope="session")
def partly(mesh_file):
    """Three parts, in which every map exchanges only what it reaches."""
    from parts_files import job

    output = mesh_file.with_name("partly.parts.h5")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(halos, "PARTIAL", 10)
        run(job(mesh_file, output, (3,), how=SplitOptions("rcb")))
    return output
