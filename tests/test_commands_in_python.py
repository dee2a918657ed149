"""The commands by their names in Python give what the commands write."""

import inspect

import meshio
import numpy as np
import pytest

import meshprep
from meshprep import MeshprepError
from meshprep.io.generate import generate
from meshprep_runtime.plan.parts import load_part

LOOPS = """
[loop.flux]
over = "edges"
args = [
  {dat = "q", map = "edges->cells", index = [0, 1], access = "read"},
  {dat = "r", map = "edges->cells", index = [0, 1], access = "inc"},
]
"""


def flux(q1, q2, r1, r2):
    f = q1[0] - q2[0]
    r1[0] += f
    r2[0] -= f


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a mesh file and a file of loops."""
    folder = tmp_path_factory.mktemp("commands")
    meshprep.write(generate("delaunay2d", cells=600, seed=1), folder / "wing.msh")
    (folder / "loops.toml").write_text(LOOPS)
    return folder


def test_reorder_of_a_file_and_of_its_mesh_are_the_same(folder):
    mesh = meshprep.read(folder / "wing.msh")
    loops = folder / "loops.toml"
    of_file = meshprep.reorder(folder / "wing.msh", loops, target="cpu")
    of_mesh = meshprep.reorder(mesh, str(loops), target="cpu")
    prepared = meshprep.prepare(mesh, meshprep.read_requests(loops), target="cpu")
    hashes = {p.plan.mesh_hash for p in (of_file, of_mesh, prepared)}
    assert len(hashes) == 1
    assert of_file.mesh.content_hash() == hashes.pop()
    assert list(of_file.plan.loops) == ["flux"]


def test_reorder_writes_what_it_is_told_to(folder, tmp_path):
    target, plan = tmp_path / "new.msh", tmp_path / "new.plan.h5"
    done = meshprep.reorder(
        folder / "wing.msh", "edges->cells", output=target, plan=plan, block_size=64
    )
    assert meshprep.read(plan).mesh_hash == done.plan.mesh_hash
    written = meshprep.read(target)
    assert written.content_hash() == done.mesh.content_hash()
    assert meshprep.check(plan, target).findings == []
    with pytest.raises(MeshprepError, match="exists"):
        meshprep.reorder(folder / "wing.msh", output=target)
    # a mesh in memory, and a plan without a file of the mesh
    again = tmp_path / "again.plan.h5"
    mesh = meshprep.read(folder / "wing.msh")
    done = meshprep.reorder(mesh, "edges->cells", plan=again, block_size=64)
    assert not done.plan.ordering["cells"].is_identity
    assert meshprep.read(again).mesh_hash == meshprep.read(plan).mesh_hash
    only = meshprep.reorder(mesh, output=tmp_path / "only.vtu", drop=True)
    assert only.plan.loops
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "again.plan.h5",
        "new.msh",
        "new.plan.h5",
        "only.vtu",
    ]


def test_plan_keeps_the_order(folder, tmp_path):
    mesh = meshprep.read(folder / "wing.msh")
    plan = meshprep.plan(mesh, "edges->cells", output=tmp_path / "p.plan.h5")
    assert plan.ordering["cells"].is_identity
    assert plan.source_hash == meshprep.plan(mesh, ["edges->cells"]).source_hash
    assert meshprep.check(plan).verdict == "the plan is right"
    with pytest.raises(MeshprepError, match="save the plan first"):
        meshprep.check(plan, folder / "wing.msh")


def test_split_of_a_file_and_of_a_mesh(folder, tmp_path):
    mesh = meshprep.read(folder / "wing.msh")
    done = meshprep.split(mesh, [2, 3], "edges->cells", output=tmp_path / "m.parts.h5")
    assert sorted(done.figures) == [2, 3]
    part = load_part(tmp_path / "m.parts.h5", 3, 1)
    assert part.sets["cells"].owned
    assert meshprep.check(tmp_path / "m.parts.h5", parts=2).findings == []
    beside = meshprep.split(folder / "wing.msh", 2, "edges->cells")
    assert beside.written == [folder / "wing.parts.h5"]
    assert meshprep.info(folder / "wing.parts.h5").to_dict()["splits"]
    with pytest.raises(MeshprepError, match="a split is a file: name it by output="):
        meshprep.split(mesh, 2)
    with pytest.raises(MeshprepError, match=r"DistributedPlan\.load"):
        meshprep.read(folder / "wing.parts.h5")


def test_info_of_files_and_objects(folder):
    mesh = meshprep.read(folder / "wing.msh")
    of_file = meshprep.info(folder / "wing.msh").to_dict()
    assert meshprep.info(mesh).to_dict() == {
        name: value for name, value in of_file.items() if name != "file"
    }
    plan = meshprep.plan(mesh, "edges->cells")
    assert meshprep.info(plan).to_dict()["kind"] == "plan"


def test_report_and_sweep(folder, tmp_path):
    mesh = meshprep.read(folder / "wing.msh")
    plan = meshprep.reorder(mesh, "edges->cells").plan
    page = tmp_path / "page.html"
    found = meshprep.report(plan, html=page, mesh=mesh)
    assert found.best() is None or found.best()
    assert "<html" in page.read_text(encoding="utf-8")
    with pytest.raises(MeshprepError, match="name its mesh"):
        meshprep.report(plan, picture=tmp_path / "a.png")
    swept = meshprep.sweep(
        mesh, "edges->cells", block_sizes="32:64", partitioners=["contiguous"]
    )
    assert len(swept.comparison.plans) == 2
    assert swept.best.block_size in (32, 64)


def test_tune_takes_the_loop_of_the_kernel(folder):
    plan = meshprep.reorder(folder / "wing.msh", folder / "loops.toml").plan
    done = meshprep.tune(plan, flux, block_sizes=[], strategies=["sequential"], runs=1)
    assert done.loop == "flux"
    assert done.plan["flux"].tuned


def test_meshes_of_others_are_taken():
    points = np.array([[0.0, 0], [1, 0], [1, 1], [0, 1]])
    mesh = meshio.Mesh(points, [("triangle", [[0, 1, 2], [0, 2, 3]])])
    done = meshprep.reorder(mesh, "cells->nodes")
    assert done.mesh.sizes == {"nodes": 4, "cells": 2}
    with pytest.raises(
        MeshprepError, match=r"mesh is a list: give a file, a meshprep\.Mesh"
    ):
        meshprep.reorder([1, 2])


def test_loops_are_given_in_every_way(folder):
    mesh = meshprep.read(folder / "wing.msh")
    argument = {"dat": "q", "map": "edges->cells", "index": [0], "access": "inc"}
    table = {"over": "edges", "args": [argument]}
    names = [
        list(meshprep.plan(mesh, loops).loops)
        for loops in ((), "edges->cells", ["edges->cells"])
    ]
    assert names == [["edges->cells"]] * 3
    assert list(meshprep.plan(mesh, {"gather": table}).loops) == ["gather"]


@pytest.mark.parametrize("name", ["reorder", "plan", "split", "sweep"])
def test_signatures_show_the_options(name):
    parameters = inspect.signature(getattr(meshprep, name)).parameters
    assert {"target", "block_size", "method"} <= set(parameters)


@pytest.mark.parametrize("name", meshprep.__all__)
def test_every_name_is_there_after_every_import(name):
    assert not inspect.ismodule(getattr(meshprep, name))
