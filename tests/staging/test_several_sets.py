"""Several sets, maps and loops at once: one map leads, the others follow, every plan is right."""

import itertools

import numpy as np
import pytest
from sum_loops import FACTORS, KERNELS, sum_request

from meshprep.io.generate import generate
from meshprep.loops.requests import LoopRequest
from meshprep.mesh import Dat, ElementSet, Mesh, SetMap
from meshprep.ordering import LocalityProblem, figures
from meshprep.pipeline.steps import Options, prepare
from meshprep.staging.order import order_for_locality
from meshprep.topology import derive
from meshprep_runtime import ParLoop


def twice(value, out):
    out[0] += 2 * value[0]


def direct(name, over):
    args = [
        {"dat": "value", "dtype": "i8"},
        {"dat": "out", "access": "inc", "dtype": "i8"},
    ]
    return LoopRequest(name, {"over": over, "args": args}, "test")


def check(mesh, requests, options, kernels):
    """The plan is valid and each of its loops gives the sums of the obvious computation."""
    plan = prepare(mesh, requests, options).plan
    assert plan.verify() == []
    for r in requests:
        loop = plan[r.name]
        over, value = loop.loop.over, np.arange(1, plan.sizes[loop.loop.over] + 1)
        new = plan.ordering[over].apply(value)
        if not loop.loop.maps:
            out = np.zeros(len(value), np.int64)
            ParLoop(twice, loop, strategy="hierarchical")(value=new, out=out)
            np.testing.assert_array_equal(plan.ordering[over].restore(out), 2 * value)
            continue
        m = derive(mesh, loop.loop.maps).map(loop.loop.maps[0])
        reference = np.zeros(mesh.size(m.to_set), np.int64)
        for column, factor in zip(m.table.T, FACTORS, strict=False):
            np.add.at(reference, column, factor * value)
        total = np.zeros_like(reference)
        ParLoop(kernels[m.table.shape[1]], loop, strategy="hierarchical")(
            value=new, total=total
        )
        np.testing.assert_array_equal(plan.ordering[m.to_set].restore(total), reference)
    return plan


TARGETS = pytest.mark.parametrize("target", ["gpu", "cpu"])


def ring(n, base=0, seed=0):
    """n cells in a ring under random numbers, and the edges between them."""
    number = np.random.default_rng(seed).permutation(n)
    return (
        number[np.stack([np.arange(n), (np.arange(n) + 1) % n], 1)].astype(np.int32) + base
    )


def two_levels():
    """A ring of 60 cells, one of 20 in which 3 became 1, the map between them, and a lone set."""
    fine, coarse = ring(60, seed=1), ring(20, seed=2)
    down = np.empty((60, 1), np.int32)
    down[fine[:, 0], 0] = coarse[np.arange(60) // 3, 0]
    sets = {"cells0": 60, "cells1": 20, "edges0": 60, "edges1": 20, "alone": 5}
    maps = [
        SetMap("edges0->cells0", "edges0", "cells0", fine),
        SetMap("edges1->cells1", "edges1", "cells1", coarse),
        SetMap("cells0->cells1", "cells0", "cells1", down),
    ]
    dats = [Dat("mark", "alone", np.arange(5))]
    return Mesh([ElementSet(n, size) for n, size in sets.items()], maps, dats)


def _bandwidth(plan, name):
    m = plan.maps[name]
    return figures(LocalityProblem(m.table, plan.sizes[m.to_set])).bandwidth


@TARGETS
def test_levels_of_a_multigrid_and_the_map_between_them(target):
    loops = [
        sum_request("smooth0", "edges0->cells0", block_size=16),
        sum_request("restrict", "cells0->cells1", block_size=8),
        sum_request("smooth1", "edges1->cells1", block_size=4),
    ]
    mesh = two_levels()
    plan = check(mesh, loops, Options(target=target), KERNELS)
    # the coarse level follows the fine one through the map: one lead, both rings in order
    assert plan.metrics.locality.set == "cells0"
    assert plan.metrics.locality.more == ()
    if target == "cpu":
        # one more than the best of a ring, as the coarse level follows and is not ordered itself
        assert _bandwidth(plan, "edges0->cells0") == 2
        assert _bandwidth(plan, "edges1->cells1") <= 3
    assert plan.ordering["alone"].is_identity


@TARGETS
def test_a_loop_through_a_map_of_a_map(target):
    loops = [
        sum_request("smooth0", "edges0->cells0", block_size=16),
        sum_request("straight", "edges0->cells0->cells1", block_size=8),
    ]
    plan = check(two_levels(), loops, Options(target=target), KERNELS)
    both, down = plan.maps["edges0->cells0->cells1"], plan.maps["edges0->cells0"].table
    # 60 edges, of which every third leads from one coarse cell to the next
    assert (both.to_set, both.table.shape) == ("cells1", (60, 2))
    assert (both.table[:, 0] != both.table[:, 1]).sum() == 20
    assert [len(np.unique(both.table[down == cell])) for cell in range(60)] == [1] * 60


@TARGETS
def test_two_meshes_without_a_map_between_them_are_both_ordered(target):
    mesh = two_levels()
    maps = [m for m in mesh.maps.values() if m.name != "cells0->cells1"]
    mesh = Mesh(mesh.sets.values(), maps, mesh.dats)
    loops = [
        sum_request("smooth0", "edges0->cells0", block_size=16),
        sum_request("again0", "edges0->cells0", block_size=5),
        sum_request("smooth1", "edges1->cells1", block_size=4),
    ]
    plan = check(mesh, loops, Options(target=target, method="rcm"), KERNELS)
    first = plan.metrics.locality
    assert (first.set, [one.set for one in first.more]) == ("cells0", ["cells1"])
    for one in (first, *first.more):
        assert one.applied
        assert one.after.bandwidth == 2
        assert (one.final.bandwidth == 2) or target == "gpu"
    # two loops over one set share its order and have each their own blocks
    assert plan["smooth0"].maps["edges0->cells0"] is plan["again0"].maps["edges0->cells0"]
    assert plan["smooth0"].variant().n_blocks == 4
    assert plan["again0"].variant().n_blocks == 12


@TARGETS
def test_a_self_map(target):
    n = 50
    table = ring(n, seed=3)
    beside = np.empty((n, 2), np.int32)
    beside[table[:, 0], 0], beside[table[:, 1], 1] = table[:, 1], table[:, 0]
    mesh = Mesh(
        [ElementSet("cells", n)], [SetMap("cells->cells", "cells", "cells", beside)]
    )
    plan = check(
        mesh,
        [sum_request("smooth", "cells->cells", block_size=8)],
        Options(target=target),
        KERNELS,
    )
    # a cell and the two beside it: neighbours are two steps apart on the ring, which is folded
    assert plan.metrics.locality.after.bandwidth == 4
    if target == "cpu":
        found = plan.maps["cells->cells"].table
        assert abs(found - np.arange(n)[:, None]).max() <= 4


@TARGETS
def test_maps_that_are_not_onto_and_sets_that_no_map_reaches(target):
    random = np.random.default_rng(4)
    mesh = Mesh(
        [
            ElementSet("a", 40),
            ElementSet("b", 100),
            ElementSet("c", 7),
            ElementSet("none", 0),
        ],
        [
            SetMap("a->b", "a", "b", random.integers(0, 50, (40, 2)) * 2),
            SetMap("c->b", "c", "b", random.integers(0, 100, (7, 1))),
        ],
    )
    loops = [
        direct("first", "a"),
        sum_request("sum", "a->b", block_size=6),
        sum_request("few", "c->b", block_size=2),
        direct("points", "b"),
        direct("empty", "none"),
    ]
    plan = check(mesh, loops, Options(target=target), KERNELS)
    # untouched points stand last
    touched = np.unique(plan.maps["a->b"].table)
    assert touched.max() < 50


@TARGETS
def test_a_loop_without_maps_in_front_leaves_the_order_to_the_others(target):
    mesh = generate("delaunay2d", cells=1500, seed=1)
    real = ["edges->cells", "cells->nodes"]
    options = Options(target=target, block_size=64)
    alone = prepare(mesh, real, options).plan
    plan = prepare(mesh, [direct("save", "cells"), *real], options).plan
    assert list(plan.loops) == ["save", *real]
    for name in real:
        assert (plan.maps[name].table == alone.maps[name].table).all()
    assert plan["save"].variant().n_blocks == -(-1500 // 64)


def test_the_cpu_streams_a_band_and_the_gpu_gets_compact_blocks():
    mesh = generate("delaunay2d", cells=4000, seed=1)
    cpu = prepare(mesh, ["edges->cells"], Options(target="cpu", block_size=128)).plan
    gpu = prepare(mesh, ["edges->cells"], Options(target="gpu", block_size=128)).plan
    band, blocks = cpu.metrics.locality.final, gpu.metrics.locality.final
    assert band == cpu.metrics.locality.after
    assert band.bandwidth < blocks.bandwidth / 10
    reuse = [
        p.metrics.loops["edges->cells"].variants["s128"].after.reuse for p in (cpu, gpu)
    ]
    assert reuse[1] > 1.3 * reuse[0]
    table = cpu.maps["edges->cells"].table
    ends = list(zip(table.min(axis=1).tolist(), table.max(axis=1).tolist(), strict=True))
    assert ends == sorted(ends)
    assert cpu["edges->cells"].variant().target == "cpu"


def test_each_target_has_its_own_block_size():
    assert (Options().block_elements, Options(target="cpu").block_elements) == (256, 2048)
    assert Options(target="cpu").for_names({"target": "gpu"}).block_elements == 256
    assert Options(target="cpu", block_size=7).effective()["block_size"] == 7
    mesh = generate("box", nx=60, ny=60, type="quad")
    plan = prepare(mesh, ["cells->nodes"], Options(target="cpu")).plan
    assert plan.options["block_size"] == 2048
    assert plan["cells->nodes"].variant().name == "s2048"


def test_nothing_leads_where_nothing_is_reached():
    from meshprep.staging.numbering import Numbering

    mesh = two_levels()
    numbering = Numbering.of(mesh, mesh.sets)
    specs = prepare(mesh, [sum_request("s", "edges0->cells0")], keep_order=True).plan
    assert order_for_locality(numbering, [(specs["s"].loop, Options())])[1] == ()
    assert specs.metrics.locality is None


@pytest.mark.parametrize("keep_order", [False, True])
def test_every_loop_keeps_the_bytes_that_a_block_may_stage(keep_order):
    """The second loop has runs of an order that is not its own; so have all where none moves."""
    mesh, loops = generate("delaunay2d", cells=300), ["edges->cells", "edges->nodes"]
    options = Options(block_size=64, staged_bytes=200)
    plan = prepare(mesh, loops, options, keep_order=keep_order).plan
    assert plan.verify() == []
    for name in loops:
        m, variant = plan.maps[name], plan[name].variant()
        ends = variant.block_offset.tolist()
        points = [np.unique(m.table[a:b]).size for a, b in itertools.pairwise(ends)]
        assert 8 * max(points) <= 200
        assert max(np.diff(ends)) > 8
