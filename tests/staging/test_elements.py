"""Blocks of sets that keep their order: lists of elements, as good as those of a new order."""

from dataclasses import replace

import numpy as np
import pytest
from sum_loops import FACTORS, KERNELS, sum_request

from meshprep.io.generate import generate
from meshprep.loops.requests import LoopRequest
from meshprep.mesh import Mesh
from meshprep.pipeline.steps import Options, prepare
from meshprep.staging.recut import recut, with_variants
from meshprep_runtime import Ordering, ParLoop, Plan
from meshprep_runtime.cpu import STRATEGIES


def shuffled(kind, seed=0, **options):
    """A mesh whose nodes and cells stand in no order at all."""
    mesh, rng = generate(kind, seed=seed, **options), np.random.default_rng(seed)
    names = [s.name for s in mesh.sets.values() if not s.parts]
    return mesh.renumber(
        {n: Ordering.from_new_to_old(rng.permutation(mesh.size(n)), n) for n in names}
    )


def check(mesh: Mesh, plan: Plan) -> None:
    """Proved, and every loop gives the sums of np.add.at in the numbering of the input."""
    assert plan.verify() == []
    for name, loop in plan.loops.items():
        m = plan.maps[loop.loop.maps[0]]
        values, total = plan.ordering[m.from_set], plan.ordering[m.to_set]
        given = np.arange(1, m.size + 1)
        expected = np.zeros(plan.sizes[m.to_set], np.int64)
        old = total.new_to_old[m.table[values.old_to_new]]
        if m.name in mesh.maps:
            np.testing.assert_array_equal(old, mesh.map(m.name).table)
        for column, factor in zip(old.T, FACTORS, strict=False):
            np.add.at(expected, column, factor * given)
        for strategy in (name for name, s in STRATEGIES.items() if s.needs_blocks):
            found = np.zeros_like(expected)
            run = ParLoop(KERNELS[m.arity], loop, strategy=strategy)
            run(value=values.apply(given), total=found)
            np.testing.assert_array_equal(total.restore(found), expected, err_msg=name)


def figures(plan, loop, side="after"):
    return getattr(plan.metrics.loops[loop].variants[plan[loop].default], side)


@pytest.mark.parametrize("partition", ["blocks", "metis"])
@pytest.mark.parametrize(
    ("kind", "size"),
    [
        ("delaunay2d", {"cells": 9000}),
        pytest.param("delaunay3d", {"cells": 6000}, marks=pytest.mark.slow),
    ],
)
def test_a_mesh_that_keeps_its_order_gets_the_blocks_of_a_reordered_one(
    kind, size, partition
):
    mesh = shuffled(kind, seed=1, **size)
    options = Options(partition=partition, block_size=128)
    kept = prepare(mesh, [sum_request("sum", "cells->nodes")], options, keep_order=True)
    moved = prepare(mesh, [sum_request("sum", "cells->nodes")], options)
    assert kept.mesh.content_hash() == mesh.content_hash()
    assert all(o.is_identity for o in kept.plan.ordering.values())
    check(mesh, kept.plan)
    reuse = figures(kept.plan, "sum").reuse
    assert reuse == pytest.approx(figures(moved.plan, "sum").reuse, rel=0.005)
    assert reuse > 3 * figures(kept.plan, "sum", "before").reuse
    variant = kept.plan["sum"].variant()
    assert figures(kept.plan, "sum").listed
    assert (variant.partitioner, variant.elements.dtype) == (partition, np.dtype("i4"))
    falls = np.diff(variant.elements) < 0
    assert np.isin(np.flatnonzero(falls) + 1, variant.block_offset).all()


def test_own_blocks_of_a_mesh_that_keeps_its_order_are_those_of_the_target():
    mesh = shuffled("delaunay2d", cells=2000)
    loops, made = [sum_request("sum", "cells->nodes")], []
    for options in (Options(own_blocks=True), Options(partition="blocks")):
        plan = prepare(mesh, loops, options, keep_order=True).plan
        made.append(plan["sum"].variant())
    assert np.array_equal(made[0].elements, made[1].elements)
    assert np.array_equal(made[0].block_offset, made[1].block_offset)


def test_nobody_asks_and_blocks_are_runs():
    """A plan without a list, as before lists were."""
    mesh = shuffled("delaunay2d", cells=600)
    for options in (Options(), Options(partition="contiguous"), Options(target="cpu")):
        plan = prepare(
            mesh, [sum_request("sum", "cells->nodes")], options, keep_order=True
        ).plan
        assert plan["sum"].variant().elements is None
        assert figures(plan, "sum").listed is None


@pytest.mark.parametrize("target", ["gpu", "cpu"])
@pytest.mark.parametrize("sort", [False, True])
def test_cells_of_two_types(target, sort):
    mesh = shuffled("mixed2d", nx=14, ny=14)
    loops = [
        sum_request("quads", "quad->nodes"),
        sum_request("triangles", "triangle->nodes"),
    ]
    options = Options(partition="metis", block_size=16, target=target, sort_by_colour=sort)
    made = prepare(mesh, loops, options, keep_order=True)
    check(mesh, made.plan)
    for name in ("quads", "triangles"):
        variant = made.plan[name].variant()
        assert (variant.elements is not None, variant.sorted_by_colour) == (True, sort)


def test_points_that_may_move_are_grouped_by_the_lists():
    """Edges are derived: those of each block of cells are neighbours in memory."""
    mesh = shuffled("delaunay2d", cells=3000)
    loops = [sum_request("sum", "cells->edges")]
    lines = {}
    for partition in (None, "blocks"):
        options = Options(partition=partition, block_size=128)
        plan = prepare(mesh, loops, options, keep_order=True).plan
        check(mesh, plan)
        lines[partition] = figures(plan, "sum").aos.lines.total
        assert plan.ordering["cells"].is_identity
    moved = prepare(mesh, loops, Options(block_size=128)).plan
    assert lines["blocks"] < 0.5 * lines[None]
    assert lines["blocks"] <= 1.05 * figures(moved, "sum").aos.lines.total


def test_a_second_loop_gets_blocks_of_its_own_where_they_share_more():
    """Faces in the order of their cells: blocks for their nodes are others."""
    mesh = shuffled("delaunay3d", seed=2, cells=3000)
    loops = [sum_request("first", "faces->cells"), sum_request("second", "faces->nodes")]
    runs = prepare(mesh, loops, Options(block_size=64)).plan
    own = prepare(mesh, loops, Options(block_size=64, own_blocks=True)).plan
    check(mesh, own)
    assert [runs[r.name].variant().elements is None for r in loops] == [True, True]
    assert [own[r.name].variant().elements is None for r in loops] == [True, False]
    assert figures(own, "second").reuse > 1.01 * figures(runs, "second").reuse
    for name in ("faces", "cells"):
        assert np.array_equal(own.ordering[name].new_to_old, runs.ordering[name].new_to_old)


def test_blocks_that_hardly_share_more_than_runs_are_runs(monkeypatch):
    """Lists are left out where they load hardly less than runs of the order."""
    mesh = shuffled("delaunay3d", seed=2, cells=3000)
    loops = [sum_request("first", "faces->cells"), sum_request("again", "faces->nodes")]
    options = Options(block_size=64, own_blocks=True)
    listed = prepare(mesh, loops, options).plan
    assert listed["again"].variant().elements is not None
    runs = prepare(mesh, loops, Options(block_size=64)).plan
    gain = figures(listed, "again").reuse / figures(runs, "again").reuse
    for least, lists in ((gain - 0.001, True), (gain + 0.001, False)):
        monkeypatch.setattr("meshprep.staging.blocks.LEAST_GAIN", least)
        plan = prepare(mesh, loops, options).plan
        check(mesh, plan)
        variant = plan["again"].variant()
        assert (variant.elements is not None, variant.partitioner == "blocks") == (
            lists,
            lists,
        )


def test_a_loop_that_names_its_partitioner_gets_it():
    mesh = shuffled("delaunay2d", cells=1200)
    loops = [
        sum_request("first", "edges->cells"),
        sum_request("second", "edges->cells", partition="metis"),
    ]
    plan = prepare(mesh, loops, Options(block_size=64)).plan
    check(mesh, plan)
    first, second = (plan[r.name].variant() for r in loops)
    assert (first.partitioner, first.elements) == ("blocks", None)
    assert second.partitioner == "metis"
    assert second.elements is not None


def test_a_part_that_has_its_order_is_listed_and_the_other_moves():
    """Of the cells the quads have their order from the first loop, the triangles none."""
    mesh = shuffled("mixed2d", nx=14, ny=14)
    loops = [
        sum_request("quads", "quad->nodes"),
        LoopRequest(
            "cells",
            {
                "over": "edges",
                "args": [
                    {"dat": "value", "dtype": "i8"},
                    {"dat": "total", "map": "edges->cells", "access": "inc", "dtype": "i8"},
                ],
            },
            "test",
        ),
    ]
    plan = prepare(mesh, loops, Options(block_size=16, own_blocks=True)).plan
    check(mesh, plan)


def test_other_sizes_are_cut_from_the_list():
    mesh = shuffled("delaunay2d", seed=4, cells=4000)
    options = Options(partition="blocks", block_size=64)
    plan = prepare(
        mesh, [sum_request("sum", "cells->nodes")], options, keep_order=True
    ).plan
    loop = plan["sum"]
    for size in (16, 256, 10**6):
        variant = recut(loop, size)
        assert np.array_equal(variant.elements, loop.variant().elements)
        widened = with_variants(loop, {variant.name: variant}, variant.name)
        check(mesh, replace(plan, loops={"sum": widened}))
    joined = recut(loop, 256).staging["nodes"].points.size
    assert joined < 0.95 * loop.variant().staging["nodes"].points.size


def test_loops_without_maps_keep_runs():
    mesh = generate("box", nx=9, ny=9, type="quad")
    args = [{"dat": "v"}, {"dat": "w", "access": "write"}]
    loops = [
        sum_request("sum", "cells->nodes"),
        LoopRequest("copy", {"over": "cells", "args": args}, ""),
    ]
    options = Options(partition="metis", block_size=16, own_blocks=True)
    plan = prepare(mesh, loops, options, keep_order=True).plan
    assert plan["copy"].variant().elements is None
    assert plan["sum"].variant().elements is not None
