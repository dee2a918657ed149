"""The steps together: on any mesh the plan is valid and a loop from it gives the right sums."""

from importlib.metadata import version

import effort
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sum_loops import FACTORS, KERNELS, sum_request

import meshprep
import meshprep_runtime
from meshprep.io.generate import generate
from meshprep.mesh import ElementSet, Mesh, SetMap, Tag
from meshprep.pipeline.steps import Options, prepare
from meshprep_runtime import MeshprepError, ParLoop, Plan, PlanError


def test_options_by_name():
    mesh = generate("delaunay2d", cells=80)
    plan = prepare(mesh, options=Options(block_size=16), target="cpu", seed=3).plan
    (loop,) = plan
    assert (plan.options["block_size"], plan.options["target"], plan.options["seed"]) == (
        16,
        "cpu",
        3,
    )
    assert (loop in plan, "edges->nodes" in plan, 3 in plan, len(plan)) == (
        True,
        False,
        False,
        1,
    )
    assert loop.replace("->", ":") in plan
    with pytest.raises(
        MeshprepError, match="there is no option 'blocksize': use block_size"
    ):
        prepare(mesh, blocksize=16)
    with pytest.raises(
        MeshprepError, match="there is no option 'x': use method, order_time"
    ):
        prepare(mesh, x=16)
    with pytest.raises(MeshprepError, match="target 'tpu' is unknown: use gpu, cpu"):
        prepare(mesh, target="tpu")


def test_versions():
    assert meshprep.__version__ == meshprep_runtime.__version__ == version("meshprep")


@st.composite
def maps(draw):
    """A random map, not onto, with repeated rows and points named twice."""
    arity = draw(st.integers(1, 3))
    n_points = draw(st.integers(1, 30))
    n = draw(st.integers(0, 60))
    seed = draw(st.integers(0, 2**31))
    table = np.random.default_rng(seed).integers(0, n_points, (n, arity))
    return Mesh(
        [ElementSet("p", n_points), ElementSet("e", n)], [SetMap("e->p", "e", "p", table)]
    )


@settings(max_examples=effort.examples(60), deadline=None)
@given(
    maps(),
    st.sampled_from(["metis", "contiguous"]),
    st.sampled_from(["gps", "rcm", "none"]),
    st.integers(1, 20),
    st.booleans(),
)
def test_any_map_gives_a_valid_plan_and_exact_sums(mesh, partition, method, size, sort):
    table = mesh.map("e->p").table
    arity = table.shape[1]
    options = Options(
        method=method, partition=partition, block_size=size, sort_by_colour=sort
    )
    plan = prepare(mesh, [sum_request("sum", "e->p")], options).plan
    assert plan.verify() == []
    value = np.arange(1, len(table) + 1)
    reference = np.zeros(mesh.size("p"), np.int64)
    for column, factor in enumerate(FACTORS[:arity]):
        np.add.at(reference, table[:, column], factor * value)
    for strategy in ("sequential", "hierarchical"):
        total = np.zeros(mesh.size("p"), np.int64)
        loop = ParLoop(KERNELS[arity], plan["sum"], strategy=strategy)
        loop(value=plan.ordering["e"].apply(value), total=total)
        np.testing.assert_array_equal(plan.ordering["p"].restore(total), reference)


@pytest.mark.parametrize(
    ("kind", "options", "loops"),
    [
        ("delaunay2d", {"cells": 600}, ["edges->cells", "cells->nodes"]),
        ("delaunay3d", {"cells": 600}, ["faces->cells", "edges->nodes"]),
        ("mixed2d", {"nx": 12, "ny": 12}, ["edges->cells"]),
        ("mixed2d", {"nx": 12, "ny": 12}, ["triangle->nodes", "quad->nodes"]),
        ("mixed3d", {"nx": 4, "ny": 4, "nz": 4}, ["faces->cells"]),
        (
            "airfoil",
            {"cells": 600},
            ["edges->cells", "edges->nodes", "cells->nodes", "boundary_edges->cells"],
        ),
    ],
)
@pytest.mark.parametrize("keep_order", [False, True])
def test_real_meshes(kind, options, loops, keep_order):
    mesh = generate(kind, seed=2, **options)
    chosen = Options(partition=None if keep_order else "metis", block_size=32)
    if not keep_order and len(loops) > 1:
        chosen = Options(block_size=32)
    done = prepare(mesh, loops, chosen, keep_order=keep_order)
    assert done.plan.verify() == []
    assert done.plan.source_hash == mesh.content_hash()
    assert done.plan.mesh_hash == done.mesh.content_hash()
    if keep_order:
        assert done.mesh.content_hash() == mesh.content_hash()
    # The mesh that is written and the orderings in the plan are one and the same.
    order = done.plan.ordering
    for name, m in mesh.maps.items():
        expected = order[m.to_set].old_to_new[m.table[order[m.from_set].new_to_old]]
        np.testing.assert_array_equal(done.mesh.map(name).table, expected)
    np.testing.assert_array_equal(
        done.mesh.coordinates, mesh.coordinates[order["nodes"].new_to_old]
    )


def test_blocks_beat_the_input_order():
    mesh = generate("delaunay2d", cells=4000, seed=1)
    plan = prepare(mesh, ["edges->cells"], Options(block_size=128)).plan
    (figures,) = plan.metrics.loops["edges->cells"].variants.values()
    assert figures.before.reuse < 1.5
    assert figures.after.reuse > 2.2
    locality = plan.metrics.locality
    assert locality.applied
    assert locality.after.bandwidth < locality.before.bandwidth / 10


def test_an_order_that_is_worse_is_not_applied_and_said():
    mesh = generate("box", nx=30, ny=30, type="quad")
    once = prepare(mesh, ["cells->nodes"], Options(method="gps"))
    # Lines of a box in natural order are as narrow as any ordering makes them.
    locality = once.plan.metrics.locality
    if locality.applied:
        assert locality.after.profile < locality.before.profile
    else:
        assert locality.reason


def test_boundary_facets_come_with_the_interior_ones():
    mesh = generate("box", nx=4, ny=4, nz=4)
    plan = prepare(mesh, ["faces->cells"], Options(block_size=16)).plan
    assert plan.maps["boundary_faces->cells"].table.shape == (96, 1)
    assert plan.sizes["boundary_faces"] == 96
    groups = plan.tags["boundary_faces"]["physical"]
    assert sorted(np.unique(groups, return_counts=True)[1]) == [16] * 6


def test_groups_of_the_boundary_go_by_name(tmp_path):
    mesh = generate("box", nx=3, ny=4, nz=5)
    sides = mesh.tag("physical", "quad")
    names = {
        1: "inlet",
        2: "two\nlines\0",
        3: "Auslaß",
        4: "",
        5: "no such face",
        6: "7 wall",
    }
    mesh = replace_tag(mesh, Tag.from_ids("physical", "quad", sides.first_ids() % 5, names))
    prepare(mesh, ["faces->cells"], Options(block_size=16)).plan.save(
        tmp_path / "a.plan.h5"
    )
    plan = Plan.load(tmp_path / "a.plan.h5")
    found = plan.tags["boundary_faces"]["physical"]
    assert plan.group_names["boundary_faces"] == {"physical": {**names, 2: "two lines "}}
    for number, name in {1: "inlet", 2: "two lines ", 3: "Auslaß", 4: ""}.items():
        members = plan.group("boundary_faces", name)
        assert (
            members.tolist()
            == [i for i, group in enumerate(found) if group == number]
            != []
        )
        assert plan.group("boundary_faces", number).tolist() == members.tolist()
    assert plan.group("boundary_faces", "no such face").size == 0
    with pytest.raises(
        PlanError, match=r"^set 'boundary_faces' has no group 'Inlet': .* inlet, "
    ):
        plan.group("boundary_faces", "Inlet")
    for number in (0, 9):
        with pytest.raises(
            PlanError, match=f"has no group '{number}': its groups are , 7 wall, "
        ):
            plan.group("boundary_faces", number)
    with pytest.raises(
        PlanError, match=r"its groups are none \(groups of sets of the mesh file "
    ):
        plan.group("faces", "inlet")
    with pytest.raises(PlanError, match="there is no set 'walls': choose nodes, "):
        plan.group("walls", "inlet")


def test_entities_are_no_groups_where_there_are_others():
    """Gmsh counts entities and physical groups apart: 2 is a side here and a curve there."""
    mesh = generate("box", nx=3, ny=4, type="quad")
    line = mesh.tag("physical", "line").first_ids()
    entity = Tag.from_ids("entity", "line", line % 4 + 1)
    both = replace_tag(mesh, Tag.from_ids("physical", "line", line)).with_(tags=[entity])
    plan = prepare(both, ["boundary_edges->cells"]).plan
    groups = plan.tags["boundary_edges"]["physical"]
    assert (
        plan.group("boundary_edges", 2).tolist()
        == np.flatnonzero(groups == 2).tolist()
        != []
    )
    one = prepare(replace_tag(mesh, entity), ["boundary_edges->cells"]).plan
    groups = one.tags["boundary_edges"]["entity"]
    assert (
        one.group("boundary_edges", 2).tolist()
        == np.flatnonzero(groups == 2).tolist()
        != []
    )


def test_facets_in_several_groups_are_in_each_of_them(tmp_path):
    mesh = generate("box", nx=3, ny=4, nz=5)
    names = {n: f"side {n}" for n in range(1, 7)} | {10: "all", 20: "odd", 30: "none"}
    side = mesh.tag("physical", "quad").first_ids()
    groups = [[n, 10] + [20] * (n % 2) for n in range(1, 7)]
    offset = np.cumsum([0, *map(len, groups)])
    tag = Tag("physical", "quad", side - 1, offset, np.concatenate(groups), names)
    made = prepare(replace_tag(mesh, tag), ["faces->cells"], Options(block_size=16))
    made.plan.save(tmp_path / "a.plan.h5")
    plan = Plan.load(tmp_path / "a.plan.h5")
    first = plan.tags["boundary_faces"]["physical"]
    assert set(first) == {*range(1, 7)}
    for number, name in names.items():
        held = [{n, 10, 20} if n % 2 else {n, 10} for n in first.tolist()]
        members = [i for i, own in enumerate(held) if number in own]
        assert plan.group("boundary_faces", name).tolist() == members
    assert plan.verify() == []


def replace_tag(mesh, tag):
    return Mesh(mesh.sets.values(), mesh.maps.values(), mesh.dats, [tag])


def test_one_cell_has_no_interior_faces():
    mesh = generate("box", nx=1, ny=1, nz=1)
    plan = prepare(mesh, ["faces->cells"]).plan
    assert plan.sizes["faces"] == 0
    assert plan.verify() == []
    assert plan["faces->cells"].variant().n_blocks == 0
    # Where nobody names a loop, that of finite elements takes its place.
    assert list(prepare(mesh).plan.loops) == ["cells->nodes"]


def test_the_plan_survives_its_file(tmp_path):
    mesh = generate("delaunay2d", cells=300, seed=3)
    plan = prepare(mesh, ["edges->cells"], Options(block_size=64)).plan
    plan.save(tmp_path / "a.plan.h5")
    again = Plan.load(tmp_path / "a.plan.h5")
    assert again.verify() == []
    assert again.metrics == plan.metrics
    assert again.options["block_size"] == 64


def test_an_input_too_scattered_to_stage_still_gives_a_plan():
    mesh = generate("box", nx=430, ny=430, type="quad", shuffle=True)
    options = Options(block_size=60_000, partition="contiguous", method="hilbert")
    plan = prepare(mesh, ["edges->cells"], options).plan
    (figures,) = plan.metrics.loops["edges->cells"].variants.values()
    assert figures.before is None
    assert figures.after.reuse > 1.5


def test_coordinates_stand_in_the_plan_where_they_are_asked_for():
    mesh = generate("delaunay2d", cells=200, seed=1)
    plan = prepare(mesh, coordinates=True).plan
    order = plan.ordering["nodes"]
    assert np.array_equal(plan.coordinates["nodes"], mesh.coordinates[order.new_to_old])
    assert prepare(mesh).plan.coordinates == {}
