import json
from dataclasses import replace

import effort
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshprep.loops.reach import indirect_dats, maps_by_place
from meshprep.metrics.measures import measure, variant_metrics
from meshprep.staging.build_variant import baseline, build_variant
from meshprep_runtime.plan import LoopPlan
from meshprep_runtime.plan.metrics import (
    SetReuse,
    Spread,
    StagedBytes,
    ThreadColourMetrics,
    UnitCount,
    VariantMetrics,
)
from meshprep_runtime.plan.records import from_json, to_json
from meshprep_runtime.program.timings import useful_bytes
from meshprep_runtime.types.loops import Access, Arg, Loop
from meshprep_runtime.types.maps import SetMap

EDGES = SetMap(
    "edges->cells", "edges", "cells", np.array([[0, 1], [1, 2], [2, 3], [3, 4], [4, 5]])
)
ENDS = SetMap(
    "edges->nodes", "edges", "nodes", np.array([[0, 9], [1, 8], [2, 7], [3, 6], [4, 5]])
)
SIZES = {"edges": 5, "cells": 6, "nodes": 10}
LOOP = Loop(
    "res_calc",
    "edges",
    (
        Arg("x", Access.READ, 2, "f8", "edges->nodes", (0, 1)),
        Arg("q", Access.READ, 4, "f8", "edges->cells", (0, 1)),
        Arg("res", Access.INC, 4, "f8", "edges->cells", (0,)),
        Arg("res", Access.INC, 4, "f8", "edges->cells", (1,)),
        Arg("w", Access.READ, 1, "f4"),
        Arg("rms", Access.INC, is_global=True),
    ),
)
MAPS = {"edges->cells": EDGES, "edges->nodes": ENDS}


def test_a_row_of_five_edges_by_hand():
    found = baseline(LOOP, MAPS, SIZES, 2)
    # Blocks {0, 1}, {2, 3}, {4} touch 3 + 3 + 2 cells and 4 + 4 + 2 nodes.
    assert found.sets == {
        "nodes": SetReuse(accesses=10, loads=10, reuse=1.0, exclusive_share=1.0),
        "cells": SetReuse(accesses=10, loads=8, reuse=1.25, exclusive_share=0.5),
    }
    assert (found.accesses, found.loads) == (20, 18)
    assert found.reuse == 20 / 18
    assert found.exclusive_share == 14 / 18
    assert (found.blocks, found.least_blocks, found.blocks_over_least) == (3, 3, 1.0)
    assert found.block_elements == Spread(min=1, mean=5 / 3, max=2)
    # A node stages 16 bytes, a cell q and res: 64 bytes.
    staged = [4 * 16 + 3 * 64, 4 * 16 + 3 * 64, 2 * 16 + 2 * 64]
    assert found.staged_bytes == StagedBytes(mean=sum(staged) / 3, max=256)
    assert found.thread_colours == ThreadColourMetrics(mean=5 / 3, max=2, bound_mean=5 / 3)
    assert found.block_colours == 2
    assert found.block_colour_blocks == Spread(min=1, mean=1.5, max=2)
    # Nodes 0, 1, 8, 9 lie on lines 0, 0, 1, 1; cells 0..2 on line 0; 2..4 on 0 and 1; 4, 5 on 1.
    lines = [2 + 2 * 1, 1 + 2 * 2, 1 + 2 * 1]
    assert found.aos.lines == UnitCount(mean=sum(lines) / 3, total=sum(lines))
    # Two nodes a sector, a cell a sector: nodes {0, 1, 8, 9}, {2, 3, 6, 7}, {4, 5}.
    sectors = [2 + 2 * 3, 2 + 2 * 3, 1 + 2 * 2]
    assert found.aos.sectors == UnitCount(mean=sum(sectors) / 3, total=sum(sectors))
    # Split into components, 4 values a sector: nodes {0, 2}, {0, 1}, {1}; cells {0}, {0, 1}, {1}.
    sectors = [2 * 2 + 8 * 1, 2 * 2 + 8 * 2, 2 * 1 + 8 * 1]
    assert found.soa.sectors.total == sum(sectors)
    assert found.soa.lines.total == 3 * (2 + 8)


def test_each_dat_counts_once_a_set():
    assert indirect_dats(LOOP, MAPS) == {
        ("x", "nodes"): (2, 8),
        ("q", "cells"): (4, 8),
        ("res", "cells"): (4, 8),
    }


def test_values_survive_json_and_name_the_variant():
    variant = build_variant(
        *(LOOP, MAPS, SIZES, np.array([0, 5])),
        block_size=8,
        target="cpu",
        partitioner="metis",
    )
    plan = LoopPlan(LOOP, SIZES, MAPS, {"s8": variant}, "s8")
    found = measure(plan)
    assert found == measure(plan, variant) == variant_metrics(LOOP, MAPS, SIZES, variant)
    assert _by_way_of_json(found) == found
    assert (found.block_size, found.target, found.partitioner) == (8, "cpu", "metis")
    assert found.sorted_by_colour is False


@settings(deadline=None, max_examples=effort.examples(80))
@given(
    st.integers(1, 60),
    st.integers(1, 4),
    st.integers(1, 60),
    st.integers(1, 20),
    st.integers(1, 7),
    st.sampled_from(["f4", "f8"]),
    st.integers(0, 10**6),
)
def test_against_sets_of_addresses(n, arity, n_to, block_size, dim, dtype, seed):
    table = np.random.default_rng(seed).integers(0, n_to, (n, arity), dtype=np.int32)
    maps = {"cells->nodes": SetMap("cells->nodes", "cells", "nodes", table)}
    args = (Arg("v", Access.INC, dim, dtype, "cells->nodes", tuple(range(arity))),)
    found = baseline(
        Loop("loop", "cells", args), maps, {"cells": n, "nodes": n_to}, block_size
    )
    blocks = [
        set(table[s : s + block_size].ravel().tolist()) for s in range(0, n, block_size)
    ]
    item = int(dtype[1])
    loads = sum(map(len, blocks))
    assert (found.accesses, found.loads) == (table.size, loads)
    assert found.reuse == pytest.approx(table.size / loads)
    assert found.staged_bytes.max == max(map(len, blocks)) * dim * item
    for unit, nbytes in (("lines", 128), ("sectors", 32)):
        aos = [
            {(p * dim * item + i) // nbytes for p in b for i in range(dim * item)}
            for b in blocks
        ]
        soa = [{(c, p * item // nbytes) for p in b for c in range(dim)} for b in blocks]
        assert getattr(found.aos, unit).total == sum(map(len, aos))
        assert getattr(found.soa, unit).total == sum(map(len, soa))
        assert getattr(found.aos, unit).mean == pytest.approx(
            sum(map(len, aos)) / len(blocks)
        )


def test_a_direct_loop_has_no_reuse():
    loop = Loop("save", "cells", (Arg("q", Access.READ), Arg("q_old", Access.WRITE)))
    found = baseline(loop, {}, {"cells": 7}, 4)
    assert found.reuse is None
    assert found.exclusive_share is None
    assert found.sets == {}
    assert (found.loads, found.blocks, found.block_colours) == (0, 2, 1)
    assert found.thread_colours == ThreadColourMetrics(mean=1.0, max=1, bound_mean=1.0)
    assert found.staged_bytes == StagedBytes(mean=0.0, max=0)
    assert found.aos.lines == UnitCount(mean=0.0, total=0)


def test_an_empty_set_has_no_figures():
    found = baseline(LOOP, _empty_maps(), {**SIZES, "edges": 0}, 4)
    assert (found.blocks, found.loads, found.block_colours) == (0, 0, 0)
    assert found.blocks_over_least is None
    assert found.block_elements == Spread(min=None, mean=None, max=None)
    assert found.thread_colours == ThreadColourMetrics(mean=None, max=None, bound_mean=None)
    assert _by_way_of_json(found) == found


def _by_way_of_json(found):
    return from_json(type(found), json.loads(json.dumps(to_json(found))), "found")


def _empty_maps() -> dict[str, SetMap]:
    none = np.empty((0, 2), np.int32)
    return {
        "edges->cells": SetMap("edges->cells", "edges", "cells", none),
        "edges->nodes": SetMap("edges->nodes", "edges", "nodes", none),
    }


def test_useful_bytes_count_the_points_that_a_loop_reaches():
    ends = SetMap("ends->cells", "ends", "cells", np.array([[4], [0], [4]]))
    rest = SetMap("ends->far", "ends", "cells", np.array([[2], [2], [4]]))
    args = (
        Arg("q", Access.READ, 4, "f8", "ends->cells", (0,)),
        Arg("q", Access.READ, 4, "f8", "ends->far", (0,)),
        Arg("res", Access.INC, 4, "f8", "ends->cells", (0,)),
        Arg("bound", Access.READ, 1, "i4"),
    )
    sizes = {"ends": 3, "cells": 1000}
    found = useful_bytes(
        Loop("bres", "ends", args), {m.name: m for m in (ends, rest)}, sizes
    )
    # q of cells 0, 2 and 4, res of 0 and 4 read and written, bound of every end
    assert found == 3 * 32 + 2 * 2 * 32 + 3 * 4


@given(st.integers(0, 2**32 - 1))
def test_useful_bytes_against_sets_of_points(seed):
    rng = np.random.default_rng(seed)
    sizes = {"ends": int(rng.integers(0, 9)), "cells": 12}
    maps = {
        name: SetMap(name, "ends", "cells", rng.integers(0, 12, (sizes["ends"], 2)))
        for name in ("ends->near", "ends->far")
    }
    args, points, passes, known = [Arg("g", Access.INC, 7, is_global=True)], {}, {}, {}
    for _ in range(rng.integers(1, 7)):
        access = Access(str(rng.choice(["read", "write", "rw", "inc"])))
        through = rng.choice([None, *maps])
        name = f"{rng.choice(['q', 'w'])} of {'ends' if through is None else 'cells'}"
        access = known.setdefault(name, access)
        if through is None and name in points and access is not Access.READ:
            continue
        args.append(Arg(name, access, 3, "f4", through, () if through is None else (1, 0)))
        reached = (
            range(sizes["ends"])
            if through is None
            else maps[through].table.ravel().tolist()
        )
        points.setdefault(name, set()).update(reached)
        did = {Access.READ: "r", Access.WRITE: "w"}.get(access, "rw")
        passes.setdefault(name, set()).update(did)
    wanted = sum(12 * len(points[name]) * len(passes[name]) for name in points)
    assert useful_bytes(Loop("bres", "ends", tuple(args)), maps, sizes) == wanted


def test_a_list_has_the_figures_of_elements_in_its_order():
    """But for direct values, which are gathered, and for the list itself."""
    rng = np.random.default_rng(4)
    sizes = {"edges": 200, "cells": 90, "nodes": 70}
    maps = {
        f"edges->{to}": SetMap(
            f"edges->{to}", "edges", to, rng.integers(0, sizes[to], (200, 2))
        )
        for to in ("cells", "nodes")
    }
    elements = rng.permutation(200).astype(np.int32)
    rows = maps_by_place(maps, elements)
    cut = {"block_size": 32, "target": "gpu", "partitioner": "metis"}
    moved = build_variant(LOOP, rows, sizes, np.array([*range(0, 200, 32), 200]), **cut)
    listed = replace(moved, elements=elements)
    there, here = (
        variant_metrics(LOOP, rows, sizes, moved),
        variant_metrics(LOOP, maps, sizes, listed),
    )
    assert (there.listed, here.listed) == (None, True)
    for layout in ("aos", "soa"):
        assert here.traffic[layout].read > there.traffic[layout].read
        assert here.traffic[layout].written == there.traffic[layout].written
    assert replace(here, listed=None, traffic={}) == replace(there, traffic={})
    assert "listed" not in to_json(there)
    assert from_json(VariantMetrics, to_json(here), "figures") == here
