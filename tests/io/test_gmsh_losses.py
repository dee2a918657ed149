"""What Gmsh files cannot hold, and meshes that are refused."""

from dataclasses import replace

import numpy as np
import pytest
from gmsh_meshes import decorated

from meshprep.io.gmsh import losses, read, write
from meshprep.io.gmsh.layout import UNFIT
from meshprep.mesh import Dat, IndexList, Mesh, Tag
from meshprep.mesh.assemble import Block, assemble
from meshprep_runtime.errors import MeshprepError


def test_losses_have_names():
    mesh = decorated().with_(
        sets=[],
        dats=[
            Dat("word", "nodes", np.array(["x"] * 16)),
            Dat("big", "cells", np.full(18, 2**60)),
            Dat("z", "cells", np.full(18, 1j)),
            Dat("two\nlines", "cells", np.zeros(18)),
            Dat("T", "cells", np.zeros(18), None, {"units": "K"}),
        ],
        tags=[Tag.from_ids("bad\nname", "nodes", np.ones(16, np.int64))],
    )
    lists = [*mesh.lists, IndexList("fixed", "nodes", np.array([1, 2]))]
    extras = {"gmsh": {"sections": (("Private", b""), ("Comments", b"x\n"))}}
    mesh = Mesh(mesh.sets.values(), mesh.maps.values(), mesh.dats, mesh.tags, lists, extras)
    assert losses(mesh) == [
        f"groups 'bad\nname' on 'nodes' (names that {UNFIT})",
        "values 'word' on 'nodes' of type <U1",
        "values 'big' on 'cells' (whole numbers beyond 2^53)",
        "values 'z' on 'cells' of type complex128",
        f"values 'two\nlines' on 'cells' (names that {UNFIT})",
        "attribute 'units' of values 'T'",
        "index list 'fixed'",
        "section $Private",
    ]


def test_types_that_gmsh_has_not(tmp_path):
    points = np.random.default_rng(0).random((20, 3))
    blocks = [
        Block("hexahedron24", np.arange(24)[None] % 20),
        Block("triangle", [[0, 1, 2]]),
    ]
    blocks = [replace(b, nodes=np.array(b.nodes)) for b in blocks]
    mesh, _ = assemble(points, blocks)
    for some in (mesh, assemble(points, blocks[:1])[0]):
        with pytest.raises(
            MeshprepError, match="cells of type 'hexahedron24' are not written"
        ):
            losses(some)
        with pytest.raises(
            MeshprepError, match="cells of type 'hexahedron24' are not written"
        ):
            write(some, tmp_path / "out.msh")
    blocks = [
        Block("tetra", np.array([[0, 1, 2, 3]])),
        Block("triangle7", np.arange(7)[None]),
    ]
    solid, _ = assemble(points, blocks)
    assert losses(solid) == ["cells of type 'triangle7'"]
    write(solid, tmp_path / "again.msh")
    assert [s.name for s in read(tmp_path / "again.msh").cell_sets] == ["cells"]


def test_meshes_that_are_no_meshes(tmp_path):
    mesh = decorated()
    with pytest.raises(MeshprepError, match=r"MSH version '3' is unknown: use 2.2 or 4.1"):
        write(mesh, tmp_path / "out.msh", version="3")
    dats = [d for d in mesh.dats if d.name != "coordinates"]
    bare = Mesh(mesh.sets.values(), mesh.maps.values(), dats)
    with pytest.raises(MeshprepError, match="the mesh has no coordinates"):
        write(bare, tmp_path / "out.msh")
