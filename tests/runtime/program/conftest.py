"""The airfoil in parts; helpers that tests of this folder share lie beside them."""

import sys
from pathlib import Path

import pytest

from airfoil import KERNELS
from meshprep.distribute.job.run import SplitJob, run
from meshprep.distribute.job.split import SplitOptions
from meshprep.io import read
from meshprep.loops.options import Options
from meshprep.loops.requests import read_requests
from meshprep.pipeline import workflow

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def airfoil_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("parts") / "airfoil.msh"
    workflow.generate("airfoil", path, values={"cells": 1200})
    return path


@pytest.fixture(scope="session")
def airfoil_mesh(airfoil_file):
    return read(airfoil_file)


@pytest.fixture(scope="session")
def airfoil_parts(airfoil_file):
    """``airfoil_parts("exec")``: the file of 1, 2, 4 and 7 parts."""
    made = {}

    def make(increments):
        if increments not in made:
            made[increments] = airfoil_file.with_name(f"{increments}.parts.h5")
            requests = read_requests(KERNELS / "airfoil.toml")
            how, options = SplitOptions(increments=increments), Options(block_size=32)
            run(
                SplitJob(
                    airfoil_file, made[increments], (1, 2, 4, 7), requests, how, options
                )
            )
        return made[increments]

    return make
