"""Meshes that other programs wrote, where they are at hand beside the checkout."""

from pathlib import Path

import netCDF4
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


@pytest.mark.parametrize(
    "name", ["brick_prism.su2", "octopus_tet.mesh", "notch_hexwedge.vtk"]
)
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


def test_side_sets_follow(tmp_path):
    """The sides at the same places, in a file whose nodes and whose cells of a block moved."""
    mesh = io.read(FOLDER / "fs8_wedge.exo")
    assert "unread" not in mesh.extras
    block, r = mesh.tag("exodus:block", "cells").first_ids(), np.random.default_rng(0)
    rows = np.lexsort((r.random(block.size), block))
    order = {"cells": rows, "nodes": r.permutation(mesh.size("nodes"))}
    moved = mesh.renumber({n: Ordering.from_new_to_old(o) for n, o in order.items()})
    assert io.write(moved, tmp_path / "a.exo") == []
    before, after = (sides_of(p) for p in (FOLDER / "fs8_wedge.exo", tmp_path / "a.exo"))
    assert len(before) == 8
    assert after == before


def sides_of(path):
    """By number of the set, the place of each element and which of its sides."""
    with netCDF4.Dataset(path) as file:
        file.set_auto_mask(False)
        several = "coord" not in file.variables
        xyz = [file[f"coord{a}"][:] for a in "xyz"] if several else file["coord"][:]
        keys = sorted(
            (k for k in file.variables if k.startswith("connect")), key=lambda k: int(k[7:])
        )
        cells = [row for k in keys for row in file[k][:].tolist()]
        places = np.round(np.transpose(xyz), 9).tolist()
        count = len(file.dimensions["num_side_sets"])
        ids = (
            file["ss_prop1"][:].tolist()
            if "ss_prop1" in file.variables
            else range(1, count + 1)
        )
        return {
            int(number): sorted(
                (sorted(places[n - 1] for n in cells[e - 1]), side)
                for e, side in zip(
                    file[f"elem_ss{i}"][:].tolist(),
                    file[f"side_ss{i}"][:].tolist(),
                    strict=True,
                )
            )
            for i, number in enumerate(ids, 1)
        }
