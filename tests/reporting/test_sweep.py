"""Sweeps: the same plans as one by one, and what is refused."""

from dataclasses import replace
from itertools import pairwise

import pytest

from meshprep import LoopRequest, Options, prepare
from meshprep.io.generate import generate
from meshprep.reporting.sweep import block_sizes, sweep, sweep_points
from meshprep.topology import derive
from meshprep_runtime.errors import MeshprepError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("64:1024", [64, 128, 256, 512, 1024]),
        ("100:450", [100, 200, 400]),
        ("128:512:128", [128, 256, 384, 512]),
        ("256", [256]),
        ("448,64:128, 20:30:5", [448, 64, 128, 20, 25, 30]),
    ],
)
def test_block_sizes_from_text(text, expected):
    assert block_sizes(text) == expected


@pytest.mark.parametrize(
    "text", ["", "a", "64:", "0:4", "8:4", "1:2:0", "1:2:3:4", "-3", "1:9999"]
)
def test_bad_block_sizes_are_refused(text):
    if text == "1:9999":
        text = "1:9999:1"
    with pytest.raises(MeshprepError, match="block sizes"):
        block_sizes(text)


def test_ways_are_every_combination():
    found = sweep_points(
        ["gps", "none"], ["metis", "blocks:staged_bytes=8", "metis"], [64, 32, 64]
    )
    assert [w.name for w in found] == [
        f"{method} {cut} s{size}"
        for method in ("gps", "none")
        for cut in ("metis", "staged_bytes=8 blocks")
        for size in (32, 64)
    ]
    assert dict(found[2].options) == {"staged_bytes": "8"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((["gps"], ["scissors"], [64]), "partitioner 'scissors' is unknown"),
        ((["straight"], ["metis"], [64]), "method 'straight' is unknown"),
        ((["gps"], ["blocks:effort"], [64]), "NAME:OPTION=VALUE"),
        ((["gps"], ["blocks:speed=9"], [64]), "no option 'speed'"),
        ((["gps"], ["metis:cuts=9"], [64]), "no option 'cuts'"),
        ((["gps"], [], [64]), "a sweep of 0 plans"),
        ((["gps"], ["metis"], range(1, 402)), "a sweep of 401 plans"),
        ((["gps"], ["metis"], [0, 4]), "block size 0"),
    ],
)
def test_bad_ways_are_refused(given, said):
    with pytest.raises(MeshprepError, match=said):
        sweep_points(*given)


def test_a_sweep_finds_what_single_runs_find():
    mesh = generate("delaunay2d", cells=500, seed=6)
    loops = ["edges->cells", "cells->nodes"]
    chosen = sweep_points(["gps", "none"], ["contiguous", "metis", "blocks"], [32, 64])
    steps = []
    found = sweep(mesh, loops, chosen, progress=lambda *step: steps.append(step))
    begun = [(s[0], s[2]) for s in steps if s[0] == int(s[0])]
    assert begun == [*enumerate(["topology", *(w.name for w in chosen)])]
    assert all(int(a[0]) <= int(b[0]) < b[1] == 1 + len(chosen) for a, b in pairwise(steps))
    assert list(found.comparison.names) == [w.name for w in chosen]
    for point, plan in zip(chosen, found.comparison.plans, strict=True):
        options = Options(
            method=point.method, partition=point.partitioner, block_size=point.block_size
        )
        alone = prepare(mesh, loops, options).plan
        assert _without_seconds(plan) == _without_seconds(alone)
        assert plan.metrics.seconds["topology"] > 0


def _without_seconds(plan):
    """The sides of every variant by loop, with all figures that do not depend on the machine."""
    found = {}
    for loop, metrics in plan.metrics.loops.items():
        for name, sides in metrics.variants.items():
            partition = replace(sides.after.partition, seconds=None)
            found[loop, name] = sides.before, replace(sides.after, partition=partition)
    return found


def test_the_best_keeps_its_arrays_and_the_others_only_figures():
    mesh = generate("delaunay2d", cells=500)
    found = sweep(
        mesh, ["edges->cells"], sweep_points(["gps"], ["contiguous", "blocks"], [32, 128])
    )
    comparison = found.comparison
    best = "gps blocks s128"
    assert (found.best.name, comparison.best().name) == (best, best)
    for name, plan in zip(comparison.names, comparison.plans, strict=True):
        assert bool(plan.maps) == bool(plan["edges->cells"].variants) == (name == best)
    assert found.to_dict()["best"] == best
    assert comparison.plans[comparison.names.index(best)].verify() == []


def test_a_sweep_of_loops_that_add_to_a_matrix():
    mesh = generate("delaunay2d", cells=300)
    args = [
        {"mat": "K", "rows": "cells->nodes", "columns": "cells->nodes", "access": "inc"}
    ]
    request = LoopRequest("stiffness", {"over": "cells", "args": args}, "")
    found = sweep(
        mesh, [request], sweep_points(["gps"], ["contiguous", "blocks"], [16, 64])
    )
    (table,) = [t for t in found.comparison.tables() if t.title == "matrices"]
    (row,) = table.rows
    # one nonzero for each node and for both ends of each edge
    edges = derive(mesh, ["edges->nodes"]).size("edges")
    assert row[table.header.index("plan")] == found.best.name
    assert row[table.header.index("nonzeros")] == f"{mesh.size('nodes') + 2 * edges:,}"


@pytest.mark.parametrize(
    ("target", "ways", "best"),
    [
        ("cpu", (["gps"], ["contiguous"], [32, 128]), "gps contiguous s128"),
        (
            "cpu",
            (["none", "gps"], ["contiguous", "blocks"], [2048]),
            "gps contiguous s2048",
        ),
        ("gpu", (["gps"], ["contiguous", "blocks"], [64, 256, 1024]), "gps blocks s256"),
        ("gpu", (["gps"], ["contiguous", "metis"], [64, 200]), "gps metis s200"),
    ],
)
def test_a_sweep_recommends_what_reorder_does(target, ways, best):
    """Larger blocks always load less, so that sizes are not compared."""
    mesh = generate("delaunay2d", cells=4000)
    found = sweep(mesh, ["edges->cells"], sweep_points(*ways), Options(target=target))
    chosen = found.comparison.best()
    assert (found.best.name, chosen.name) == (best, best)
    if "metis" in best:
        assert chosen.reason.startswith(
            "which moves the fewest sectors of those with blocks of 200"
        )
    else:
        assert chosen.reason.startswith("as reorder chooses itself: ")
    tells = chosen.reason.endswith("; only 'meshprep tune' tells sizes apart")
    assert tells == (len(ways[2]) > 1)


def test_a_loop_of_its_own_size_follows_the_sweep():
    mesh = generate("delaunay2d", cells=300)
    loop = LoopRequest(
        "flux",
        {
            "over": "edges",
            "block_size": 50,
            "args": [{"dat": "r", "map": "edges->cells", "access": "inc"}],
        },
        "here",
    )
    found = sweep(mesh, [loop], sweep_points(["gps"], ["contiguous"], [32, 64]))
    assert [c.after.block_size for c in found.comparison.columns()] == [32, 64]


def test_ways_that_fail_are_told_and_the_rest_goes_on():
    mesh = generate("delaunay2d", cells=300)
    found = sweep(
        mesh,
        ["edges->cells"],
        sweep_points(["gps"], ["blocks:staged_bytes=1", "metis"], [64]),
    )
    assert list(found.comparison.names) == ["gps metis s64"]
    ((name, reason),) = found.failures
    assert name == "gps staged_bytes=1 blocks s64"
    assert reason
    assert found.to_dict()["failures"] == [{"plan": name, "reason": reason}]
    with pytest.raises(MeshprepError, match="no plan could be made; gps staged"):
        sweep(
            mesh, ["edges->cells"], sweep_points(["gps"], ["blocks:staged_bytes=1"], [64])
        )
