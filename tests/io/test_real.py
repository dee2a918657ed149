"""Meshes that other programs wrote, where they are at hand beside the checkout."""

from pathlib import Path

import numpy as np
import pytest

from meshprep import io
from meshprep.io.compare import difference
from meshprep_runtime.types.ordering import Ordering

FOLDER = Path(__file__).parents[2].parent / "shared" / "data" / "meshes"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the real meshes are not here")

SIZES = {
    "brick_prism.su2": {"nodes": 16800, "cells": 29640, "quad": 2320, "triangle": 2964},
    "cylheat_mix.su2": {"nodes": 25122, "triangle": 29152, "quad": 9940, "line": 1210},
    "octopus_tet.mesh": {"nodes": 452, "triangle": 898, "cells": 1140},
    "notch_hexwedge.vtk": {"nodes": 3537, "hexahedron": 2188, "wedge": 4},
    "fs8_wedge.exo": {"nodes": 1000, "cells": 1344},
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes(name):
    mesh = io.read(FOLDER / name)
    found = {s.name: s.size for s in mesh.sets.values()}
    found.pop("cells", None) if mesh.sets["cells"].parts else None
    assert found == SIZES[name]


@pytest.mark.parametrize("name", ["brick_prism.su2", "octopus_tet.mesh", "notch_hexwedge.vtk"])
def test_a_shuffled_mesh_comes_back_as_shuffled(name, tmp_path):
    mesh = io.read(FOLDER / name)
    r = np.random.default_rng(0)
    sets = ["nodes", *(mesh.sets["cells"].parts or ["cells"])]
    order = {s: Ordering.from_new_to_old(r.permutation(mesh.size(s))) for s in sets}
    shuffled = mesh.renumber(order)
    assert io.write(shuffled, tmp_path / name) == []
    assert difference(shuffled, io.read(tmp_path / name)) is None


def test_markers_and_blocks_have_names():
    assert dict(io.read(FOLDER / "cylheat_mix.su2").tag("su2:tag", "line").names) == {
        1: "IN",
        2: "NOZZLE",
        3: "OUT",
        4: "PIN",
        5: "SYM",
    }
    blocks = io.read(FOLDER / "fs8_wedge.exo").tag("exodus:block", "cells")
    assert np.bincount(blocks.first_ids()).tolist() == [0, 336, 336, 672]


def test_side_sets_are_not_forgotten():
    assert io.read(FOLDER / "fs8_wedge.exo").extras["unread"] == ("8 side sets",)
