from itertools import pairwise

import effort
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshprep.colouring import ThreadColours
from meshprep.loops.reach import maps_by_set, written_table
from meshprep.staging.build_variant import build_variant
from meshprep.staging.staging import build_staging
from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.loops import Access, Arg, Loop
from meshprep_runtime.types.maps import SetMap


def _slow_lists(tables: list[np.ndarray], block_offset: np.ndarray) -> list[list[int]]:
    pairs = pairwise(block_offset)
    return [sorted({int(p) for t in tables for p in t[a:b].ravel()}) for a, b in pairs]


@settings(deadline=None, max_examples=effort.examples(150))
@given(
    st.integers(0, 60),
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
    st.integers(1, 50),
    st.lists(st.integers(0, 60), max_size=6),
    st.integers(0, 10**6),
)
def test_lists_hold_what_each_block_touches(n, arities, n_to, cuts, seed):
    rng = np.random.default_rng(seed)
    tables = [rng.integers(0, n_to, (n, k), dtype=np.int32) for k in arities]
    block_offset = np.array([0, *sorted(min(c, n) for c in cuts), n], dtype=np.int64)
    staging, local = build_staging(tables, n_to, block_offset)
    lists = _slow_lists(tables, block_offset)
    parts = np.split(staging.points, staging.point_offset[1:-1])
    assert [p.tolist() for p in parts] == lists
    every = [p for points in lists for p in points]
    assert staging.exclusive.tolist() == [every.count(p) == 1 for p in every]
    block = np.repeat(np.arange(block_offset.size - 1), np.diff(block_offset))
    for table, found in zip(tables, local, strict=True):
        assert found.dtype == np.uint16
        assert found.flags.c_contiguous
        at = staging.point_offset[block] + found.astype(np.int64)
        assert (staging.points[at] == table.T).all()


def test_a_full_list_reaches_the_last_local_index():
    table = np.arange(65536, dtype=np.int32)[::-1].reshape(-1, 2).copy()
    staging, (local,) = build_staging([table], 65536, np.array([0, 32768]))
    assert staging.points.tolist() == list(range(65536))
    assert local[0, 0] == 65535
    assert local[1, -1] == 0


def test_a_block_that_cannot_be_staged_is_named():
    table = np.arange(2 * 65538, dtype=np.int32).reshape(-1, 2)
    with pytest.raises(
        MeshprepError, match=r"block 1 touches 131074 points.*lower the block size"
    ):
        build_staging([table], table.size, np.array([0, 1, 65538]))


def _map(name: str, table: list[list[int]]) -> SetMap:
    return SetMap(name, *name.split("->"), np.array(table, dtype=np.int32))


def _arg(name: str, access: Access, map_name: str, *index: int) -> Arg:
    return Arg(name, access, map=map_name, index=index)


def test_only_written_columns_conflict_and_maps_into_one_set_share_its_points():
    maps = {
        "edges->cells": _map("edges->cells", [[0, 1, 2], [3, 4, 5]]),
        "edges->cells (far)": SetMap(
            "edges->cells (far)", "edges", "cells", np.array([[5], [0]])
        ),
        "edges->nodes": _map("edges->nodes", [[7, 8], [8, 9]]),
        "edges->faces": _map("edges->faces", [[1], [1]]),
    }
    loop = Loop(
        "flux",
        "edges",
        (
            _arg("r", Access.INC, "edges->cells", 2, 0),
            _arg("q", Access.READ, "edges->cells", 1),
            _arg("r", Access.INC, "edges->cells (far)", 0),
            _arg("x", Access.READ, "edges->nodes", 0, 1),
            _arg("f", Access.WRITE, "edges->faces", 0),
        ),
    )
    table, n_points = written_table(
        loop, maps, {"edges": 2, "cells": 6, "nodes": 10, "faces": 4}
    )
    assert table.tolist() == [[0, 2, 5, 6 + 1], [3, 5, 0, 6 + 1]]
    assert n_points == 10
    assert maps_by_set(loop, maps) == {
        "cells": ["edges->cells", "edges->cells (far)"],
        "nodes": ["edges->nodes"],
        "faces": ["edges->faces"],
    }


def test_variant_of_a_small_loop():
    # Five cells in a row and the four edges between them, two a block.
    maps = {
        "edges->cells": _map("edges->cells", [[0, 1], [1, 2], [2, 3], [3, 4]]),
        "edges->nodes": _map("edges->nodes", [[0, 5], [1, 6], [2, 7], [3, 8]]),
    }
    loop = Loop(
        "res",
        "edges",
        (
            _arg("x", Access.READ, "edges->nodes", 0, 1),
            _arg("res", Access.INC, "edges->cells", 0, 1),
        ),
    )
    sizes = {"edges": 4, "cells": 5, "nodes": 10}
    variant = build_variant(
        *(loop, maps, sizes, np.array([0, 2, 4])),
        block_size=2,
        target="gpu",
        partitioner="contiguous",
    )
    assert (variant.name, variant.block_size, variant.target) == ("s2", 2, "gpu")
    assert (variant.partitioner, variant.sorted_by_colour) == ("contiguous", False)
    assert variant.thread_colours.tolist() == [2, 2]
    assert variant.thread_colour[0] != variant.thread_colour[1]
    assert variant.block_order.tolist() == [1, 0] or variant.block_order.tolist() == [0, 1]
    assert variant.block_colour_offset.tolist() == [0, 1, 2]
    cells = variant.staging["cells"]
    assert cells.points.tolist() == [0, 1, 2, 2, 3, 4]
    assert cells.point_offset.tolist() == [0, 3, 6]
    assert cells.exclusive.tolist() == [True, True, False, False, True, True]
    assert variant.local["edges->cells"].tolist() == [[0, 1, 0, 1], [1, 2, 1, 2]]
    assert variant.staging["nodes"].points.tolist() == [0, 1, 5, 6, 2, 3, 7, 8]
    assert variant.local["edges->nodes"].tolist() == [[0, 1, 0, 1], [2, 3, 2, 3]]


def test_a_loop_that_only_reads_has_one_colour_but_is_staged():
    maps = {"cells->nodes": _map("cells->nodes", [[0, 1, 2], [1, 2, 3]])}
    loop = Loop("area", "cells", (_arg("x", Access.READ, "cells->nodes", 0, 1, 2),))
    variant = build_variant(
        *(loop, maps, {"cells": 2, "nodes": 4}, np.array([0, 2])),
        block_size=2,
        target="cpu",
        partitioner="metis",
        thread_colours=ThreadColours(np.zeros(2, "u1"), np.ones(1, "i4"), np.ones(1, "i4")),
    )
    assert variant.sorted_by_colour
    assert variant.thread_colour.tolist() == [0, 0]
    assert variant.thread_colours.tolist() == [1]
    assert variant.n_block_colours == 1
    assert variant.staging["nodes"].points.tolist() == [0, 1, 2, 3]


def test_a_direct_loop_stages_nothing():
    loop = Loop("save", "cells", (Arg("q", Access.READ), Arg("q_old", Access.WRITE)))
    variant = build_variant(
        *(loop, {}, {"cells": 5}, np.array([0, 3, 5])),
        block_size=3,
        target="gpu",
        partitioner="contiguous",
    )
    assert variant.staging == {}
    assert variant.local == {}
    assert variant.thread_colour.tolist() == [0] * 5
    assert variant.block_order.tolist() == [0, 1]
    assert variant.n_block_colours == 1
