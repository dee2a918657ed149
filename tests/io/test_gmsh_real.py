"""Gmsh files of other projects, where they are at hand beside the checkout."""

import contextlib
import io
from pathlib import Path

import meshio
import numpy as np
import pytest
from gmsh_meshes import KINDS, groups

from meshprep.io.compare import difference
from meshprep.io.gmsh import losses, read, write
from meshprep_runtime.types.ordering import Ordering

FOLDER = Path(__file__).parents[2].parent / "shared" / "data" / "meshes"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the real meshes are not here")

SIZES = {
    "indheat_b41.msh": {"nodes": 5291, "triangle": 6446, "cells": 30444},
    "cuubat_sets.msh": {"nodes": 419, "triangle": 132, "cells": 1391},
    "mixedtriquad.msh": {"nodes": 56, "line": 22, "triangle": 16, "quad": 36, "cells": 52},
    "tgv_hex.msh": {"nodes": 35937, "quad": 6144, "cells": 32768},
    "torus_p3.msh": {"nodes": 1210, "quad16": 48, "cells": 36},
    "surf3d_nonman_b41.msh": {"nodes": 117, "vertex": 1, "line": 64, "cells": 204},
}
every = pytest.mark.parametrize("name", SIZES)


@every
def test_sizes(name):
    assert {s.name: s.size for s in read(FOLDER / name).sets.values()} == SIZES[name]


# meshio fails on the others: groups in part of the entities.
@pytest.mark.parametrize(
    "name", ["tgv_hex.msh", "torus_p3.msh", "mixedtriquad.msh", "indheat_b41.msh"]
)
def test_as_meshio_reads_it(name):
    mesh = read(FOLDER / name)
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        theirs = meshio.read(FOLDER / name)
    assert np.array_equal(mesh.coordinates, theirs.points)
    for s in mesh.cell_sets:
        found = [b.data for b in theirs.cells if b.type == s.cell_type]
        assert np.array_equal(mesh.cell_map(s.name).table, np.concatenate(found))
        for tag, key in (("entity", "gmsh:geometrical"), ("physical", "gmsh:physical")):
            if key not in theirs.cell_data or len(theirs.cell_data[key]) < len(
                theirs.cells
            ):
                continue
            blocks = zip(theirs.cells, theirs.cell_data[key], strict=True)
            expected = [v for b, v in blocks if b.type == s.cell_type]
            assert np.array_equal(
                mesh.tag(tag, s.name).first_ids(), np.concatenate(expected)
            )


def test_groups_have_names():
    mesh = read(FOLDER / "cuubat_sets.msh")
    assert mesh.tag("physical", "triangle").names == {26: "interface", 27: "boundary"}
    assert mesh.tag("physical", "cells").names == {25: "both"}
    assert set(groups(mesh, "physical", "cells")) == {(25,)}
    names = read(FOLDER / "tgv_hex.msh").tag("physical", "quad").names
    assert names[2] == "periodic_0_l"
    assert len(names) == 6


def test_periodic_links():
    mesh = read(FOLDER / "torus_p3.msh")
    assert len(mesh.lists) == 5
    link = mesh.lists[0]
    assert [link.attrs[k] for k in ("dim", "slave", "master")] == [2, 227, 201]
    turn = np.array(link.attrs["affine"]).reshape(4, 4)[:3, :3]
    slave, master = (mesh.coordinates[link.index[:, j]] for j in (0, 1))
    assert np.allclose(master @ turn.T, slave, atol=1e-6)


@every
@pytest.mark.parametrize(("version", "binary"), KINDS)
def test_a_shuffled_mesh_comes_back_as_shuffled(tmp_path, name, version, binary):
    mesh = read(FOLDER / name)
    assert losses(mesh) == []
    r = np.random.default_rng(0)
    sets = ["nodes", *(s.name for s in mesh.cell_sets)]
    order = {s: Ordering.from_new_to_old(r.permutation(mesh.size(s))) for s in sets}
    shuffled = mesh.renumber(order)
    write(shuffled, tmp_path / name, version=version, binary=binary)
    found = read(tmp_path / name)
    assert difference(shuffled, found) is None
    assert found.content_hash() == shuffled.content_hash()
