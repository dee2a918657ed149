"""From file to file: outputs take their names when the plan is proved and the mesh read back."""

from dataclasses import replace

import numpy as np
import pytest

from meshprep import io
from meshprep.io.generate import generate
from meshprep.io.source import MeshSource
from meshprep.loops.options import Options
from meshprep.mesh import Dat
from meshprep.mesh.original import with_type_order
from meshprep.pipeline import steps, workflow
from meshprep.pipeline.check_file import check
from meshprep.pipeline.workflow import Job, run
from meshprep.topology import derive
from meshprep_runtime.errors import MeshprepError, ProofError


@pytest.fixture
def job(tmp_path):
    mesh = tmp_path / "wing.msh"
    io.write(generate("delaunay2d", cells=400), mesh)
    options = Options(block_size=64)
    return Job(MeshSource(mesh), tmp_path / "new.msh", tmp_path / "new.h5", options=options)


def test_a_wrong_plan_leaves_nothing_beside_the_input(job, monkeypatch):
    def refuse(plan, maps, together):
        raise ProofError("the plan is wrong in 1 places")

    monkeypatch.setattr(steps, "refuse_wrong", refuse)
    with pytest.raises(ProofError, match="wrong in 1 places"):
        run(job)
    assert list(job.source.path.parent.iterdir()) == [job.source.path]


def test_a_mesh_that_reads_back_wrong_leaves_nothing_beside_the_input(job, monkeypatch):
    def refuse(*args, **options):
        raise MeshprepError("format 'gmsh' does not keep this mesh")

    monkeypatch.setattr(workflow.io, "write", refuse)
    with pytest.raises(MeshprepError, match="does not keep this mesh"):
        run(job)
    assert list(job.source.path.parent.iterdir()) == [job.source.path]


def test_the_plan_that_is_saved_has_the_seconds_of_its_proof(job):
    made = run(job).plan
    assert made.metrics.seconds["proof"] > 0
    assert made.mesh_hash == io.read(job.output).content_hash()
    assert check(job.plan, MeshSource(job.output)).findings == []


def test_a_file_that_numbers_its_cell_types_otherwise_fits_its_plan(tmp_path):
    # the file before: triangles first; MED and the plan's mesh in MED: quads first
    source, output, again = (tmp_path / name for name in ("a.vtu", "b.med", "a.med"))
    mesh = triangles_first(generate("mixed2d", nx=6, ny=6))
    io.write(mesh, source, drop=True)
    io.write(mesh, again, drop=True)
    plan = tmp_path / "plan.h5"
    run(Job(MeshSource(source), output, plan, options=Options(block_size=8), drop=True))
    assert check(plan, MeshSource(source)).verdict.endswith("elements)")
    for other in (output, again):
        found = check(plan, MeshSource(other))
        assert found.findings == []
        assert "the plan numbers the cells by type as triangle, quad" in found.verdict


def test_an_order_of_cell_types_moves_all_that_is_on_the_cells(tmp_path):
    mesh = triangles_first(generate("mixed2d", nx=3, ny=2))
    n = mesh.size("triangle")
    values = np.arange(mesh.size("cells"))
    full = derive(mesh, ["edges->cells"]).with_(dats=[Dat("number", "cells", values)])
    turned = with_type_order(full, ["quad", "nodes", "triangle"])
    assert turned.sets["cells"].parts == ("quad", "triangle")
    expected = np.concatenate([values[n:], values[:n]])
    assert np.array_equal(turned.dats[-1].values, expected)
    before, after = (m.map("edges->cells").table for m in (full, turned))
    assert np.array_equal(expected[after], before)
    assert with_type_order(mesh, ["triangle", "quad"]) is mesh
    assert with_type_order(mesh, ["quad"]) is mesh


def triangles_first(mesh):
    turned = with_type_order(mesh, ["triangle", "quad"])
    # writers go by the order of the sets
    return replace(turned, sets=sorted(turned.sets.values(), key=lambda s: s.name == "quad"))
