"""From file to file: outputs take their names when the plan is proved and the mesh read back."""

from dataclasses import replace

import meshio
import numpy as np
import pytest

from meshprep import io
from meshprep.io.generate import generate
from meshprep.io.source import MeshSource
from meshprep.loops.options import Options
from meshprep.loops.requests import simple_request
from meshprep.mesh import Dat
from meshprep.mesh.original import with_type_order
from meshprep.pipeline import steps, workflow
from meshprep.pipeline.check_file import check
from meshprep.pipeline.workflow import Job, run
from meshprep.topology import derive
from meshprep_runtime.errors import MeshprepError, ProofError
from meshprep_runtime.types.ordering import Ordering


@pytest.fixture
def job(tmp_path):
    mesh = tmp_path / "wing.msh"
    io.write(generate("delaunay2d", cells=400), mesh)
    options = Options(block_size=64)
    return Job(MeshSource(mesh), tmp_path / "new.msh", tmp_path / "new.h5", options=options)


def test_a_wrong_plan_leaves_nothing_beside_the_input(job, monkeypatch):
    def refuse(plan, maps):
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
    return replace(
        turned, sets=sorted(turned.sets.values(), key=lambda s: s.name == "quad")
    )


@pytest.mark.parametrize("ending", ["vtu", "vtk", "xdmf"])
@pytest.mark.parametrize(
    ("name", "kind"),
    [("label", "i4"), ("label", "f8"), ("coordinates", "f8"), ("data:label", "u8")],
)
def test_values_with_names_of_meshprep_s_own_come_back(ending, name, kind, tmp_path):
    mesh = generate("mixed2d", nx=4, ny=3)
    cells = [(s.cell_type, mesh.cell_map(s.name).table) for s in mesh.cell_sets]
    rng = np.random.default_rng(0)
    on_nodes = rng.integers(0, 4, mesh.size("nodes")).astype(kind)
    on_cells = [rng.integers(0, 4, len(table)).astype(kind) for _, table in cells]
    old, new = tmp_path / f"a.{ending}", tmp_path / f"b.{ending}"
    points = np.pad(mesh.coordinates, ((0, 0), (0, 1)))
    meshio.Mesh(points, cells, {name: on_nodes}, {name: on_cells}).write(old)
    plan = run(Job(MeshSource(old), new, tmp_path / "b.h5")).plan
    found = meshio.read(new)
    order = plan.ordering["nodes"]
    assert order.restore(found.point_data[name]).tolist() == on_nodes.tolist()
    for block, values in zip(found.cells, found.cell_data[name], strict=True):
        before = next(
            v for (t, _), v in zip(cells, on_cells, strict=True) if t == block.type
        )
        assert plan.ordering[block.type].restore(values).tolist() == before.tolist()


def test_numbers_of_elements_go_into_the_plan(tmp_path):
    mesh = generate("delaunay2d", cells=50)
    for kind, kept in (("u8", True), ("i4", True), ("f8", False)):
        label = np.arange(mesh.size("nodes"), dtype=kind)[::-1] * 3
        done = steps.prepare(mesh.with_(dats=[Dat("label", "nodes", label)]))
        tags = done.plan.tags.get("nodes", {})
        assert ("label" in tags) == kept == (done.mesh.dat("label", "nodes") is None)
        numbers = tags.get("label", done.mesh.dats[-1].values)
        assert done.plan.ordering["nodes"].restore(numbers).tolist() == label.tolist()


def test_numbers_of_cells_give_way_together(tmp_path):
    """A type of one cell cannot move, and most formats number all types or none."""
    mesh = generate("mixed2d", nx=4, ny=3)
    tables = {s.cell_type: mesh.cell_map(s.name).table for s in mesh.cell_sets}
    cells = [("quad", tables["quad"][:1]), ("triangle", tables["triangle"][::-1])]
    numbers = [np.array([7]), np.arange(len(cells[1][1])) * 3 + 10]
    points = np.pad(mesh.coordinates, ((0, 0), (0, 1)))
    meshio.Mesh(points, cells, cell_data={"label": numbers}).write(tmp_path / "a.vtu")
    job = Job(MeshSource(tmp_path / "a.vtu"), tmp_path / "b.vtu", tmp_path / "b.h5")
    plan = run(job).plan
    assert not plan.ordering["triangle"].is_identity
    assert "label" not in meshio.read(tmp_path / "b.vtu").cell_data
    for name, old in zip(("quad", "triangle"), numbers, strict=True):
        found = plan.ordering[name].restore(plan.tags[name]["label"])
        assert found.tolist() == old.tolist()


@pytest.mark.parametrize("first", ["edges->cells", "line->nodes"])
def test_a_plan_has_boundary_cells_in_the_order_of_an_su2_file(first, tmp_path):
    mesh = generate("mixed2d", nx=6, ny=5)
    rng = np.random.default_rng(0)
    order = Ordering.from_new_to_old(rng.permutation(mesh.size("line")))
    io.write(mesh.renumber({"line": order}), tmp_path / "a.msh")
    requests = tuple(map(simple_request, dict.fromkeys([first, "line->nodes"])))
    job = Job(
        MeshSource(tmp_path / "a.msh"), tmp_path / "b.su2", tmp_path / "b.h5", requests
    )
    plan = run(replace(job, drop=True, options=Options(block_size=8))).plan
    found = io.read(tmp_path / "b.su2")
    assert (
        found.map("line->nodes").table.tolist() == plan.maps["line->nodes"].table.tolist()
    )
    for path in (tmp_path / "a.msh", tmp_path / "b.su2"):
        assert check(tmp_path / "b.h5", MeshSource(path)).findings == []


def test_original_ids_of_one_mesh_lead_to_one_file(tmp_path):
    mesh = generate("mixed2d", nx=4, ny=3)
    first = np.arange(mesh.size("nodes"))[::-1].astype(np.int32)
    io.write(mesh.with_(dats=[Dat("original_id", "nodes", first)]), tmp_path / "a.msh")
    job = Job(MeshSource(tmp_path / "a.msh"), tmp_path / "b.vtu", tmp_path / "b.h5")
    done = run(replace(job, drop=True))
    found = io.read(tmp_path / "b.vtu")
    moved = done.plan.ordering["nodes"].apply(first)
    assert found.dat("original_id", "nodes").values.tolist() == moved.tolist()
    assert [d.set for d in found.dats if d.name == "original_id"] == ["nodes"]
    assert any("those of nodes are of an earlier file" in note for note in done.notes)
