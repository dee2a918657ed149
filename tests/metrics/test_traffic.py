"""Predicted sectors against sets of byte addresses, gathered element by element."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import effort
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshprep.loops.reach import maps_by_place
from meshprep.metrics.traffic import LAYOUTS, traffic
from meshprep.staging.build_variant import baseline_variant
from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.plan.matrices import MatrixPlan, with_places
from meshprep_runtime.types.loops import Access, Arg, Loop
from meshprep_runtime.types.maps import SetMap

READ, WRITE, RW, INC = Access.READ, Access.WRITE, Access.RW, Access.INC
LOOPS = {
    "flux": (
        Arg("x", READ, 2, "f8", "edges->nodes", (0, 1)),
        Arg("q", READ, 4, "f4", "edges->cells", (0,)),
        Arg("res", INC, 3, "f8", "edges->cells", (0,)),
        Arg("res", INC, 3, "f8", "edges->cells", (1,)),
        Arg("w", READ, 3, "f4"),
        Arg("flag", WRITE, 1, "i4"),
        Arg("rms", INC, is_global=True),
    ),
    "gather": (
        Arg("x", READ, 5, "f8", "edges->nodes", (1,)),
        Arg("out", RW, 2, "f8"),
    ),
    "relax": (
        Arg("q", RW, 1, "f4", "edges->cells", (0,)),
        Arg("q", RW, 1, "f4", "edges->cells", (1,)),
        Arg("old", WRITE, 2, "f8", "edges->nodes", (0, 1)),
    ),
    "direct": (Arg("a", READ, 4, "f8"), Arg("b", WRITE, 1, "f4")),
}


def _mesh(n, n_cells, n_nodes, seed):
    random = np.random.default_rng(seed)
    sizes = {"edges": n, "cells": n_cells, "nodes": n_nodes}
    maps = {
        f"edges->{to}": SetMap(
            f"edges->{to}", "edges", to, random.integers(0, sizes[to], (n, 2))
        )
        for to in ("cells", "nodes")
    }
    return maps, sizes


def _sectors(name, start, nbytes):
    return {(name, byte // 32) for byte in range(start, start + nbytes)}


def _values(name, i, dim, item, layout):
    if layout == "aos":
        return _sectors(name, i * dim * item, dim * item)
    return set().union(*(_sectors((name, c), i * item, item) for c in range(dim)))


def _groups(variant):
    """The elements of each block, and where their maps and colours lie."""
    ranges = [list(range(a, b)) for a, b in pairwise(variant.block_offset.tolist())]
    listed = variant.elements
    return [(r if listed is None else listed[r].tolist(), r) for r in ranges]


def _slow(loop, maps, variant, layout, local, colour):
    """Reads and writes by kind: for each block the union of what its elements touch."""
    reads, writes, before = Counter(), Counter(), Counter()
    gathers = variant.elements is not None and any(
        not a.map and not a.is_global for a in loop.args
    )
    coloured = any(a.conflicts for a in loop.args)
    for b, (group, places) in enumerate(_groups(variant)):
        read = {kind: set() for kind in ("indirect", "direct", "maps", "plan")}
        write = {kind: set() for kind in ("indirect", "direct")}
        lists = {}
        for a in (a for a in loop.args if not a.is_global):
            to_set = maps[a.map].to_set if a.map else None
            key = (a.name, to_set)
            item, points = int(a.dtype[1]), group
            if to_set:
                tables = [maps[m].table for m in loop.maps if maps[m].to_set == to_set]
                points = {p for t in tables for p in t[list(group)].ravel().tolist()}
                lists[to_set] = points
                for i in a.index:
                    for p in places:
                        read["plan"] |= _sectors((a.map, i), p * local, local)
            touched = set().union(
                *(_values(key, int(p), a.dim, item, layout) for p in points)
            )
            kind = "indirect" if to_set else "direct"
            if a.access is not WRITE:
                read[kind] |= touched
            if a.access is not READ:
                write[kind] |= touched
        read["plan"] |= {"order"} | _sectors("offset", 8 * b, 16)
        for to_set, points in lists.items():
            read["plan"] |= _sectors((to_set, "offset"), 8 * b, 16)
            read["plan"] |= _sectors((to_set, "list"), 4 * before[to_set], 4 * len(points))
            before[to_set] += len(points)
        for p in places:
            if coloured:
                read["plan"] |= {"count"} | _sectors("colour", p * colour, colour)
            if gathers:
                read["plan"] |= _sectors("elements", 4 * p, 4)
        for bag, found in ((reads, read), (writes, write)):
            bag.update({kind: len(sectors) for kind, sectors in found.items()})
    return reads, writes


def _variant(loop, maps, sizes, block_size, lists):
    """Runs of the elements, or of a list of them."""
    if not lists:
        return baseline_variant(loop, maps, sizes, block_size)
    elements = np.random.default_rng(9).permutation(sizes["edges"]).astype(np.int32)
    rows = maps_by_place(maps, elements)
    return replace(baseline_variant(loop, rows, sizes, block_size), elements=elements)


@settings(deadline=None, max_examples=effort.examples(150))
@given(
    st.sampled_from(sorted(LOOPS)),
    st.sampled_from(LAYOUTS),
    st.integers(1, 90),
    st.integers(1, 60),
    st.integers(1, 60),
    st.integers(1, 40),
    st.sampled_from([(2, 1), (4, 4)]),
    st.integers(0, 10**6),
    st.booleans(),
)
def test_against_sets_of_addresses(
    name, layout, n, n_cells, n_nodes, block_size, widths, seed, lists
):
    maps, sizes = _mesh(n, n_cells, n_nodes, seed)
    loop = Loop(name, "edges", LOOPS[name])
    variant = _variant(loop, maps, sizes, block_size, lists)
    local, colour = widths
    found = traffic(loop, maps, sizes, variant, layout=layout, local=local, colour=colour)
    reads, writes = _slow(loop, maps, variant, layout, *widths)
    assert found.reads == dict(reads)
    assert found.writes == dict(writes)
    assert (found.read, found.written) == (reads.total(), writes.total())


def _matrix(n, nonzeros, seed):
    """Places by chance of the four entries of each edge, some without; nothing else counts."""
    place = np.random.default_rng(seed).integers(-1, nonzeros, (n, 4)).astype(np.int32)
    none = np.zeros(0, np.int32)
    columns = np.zeros(nonzeros, np.int32)
    return MatrixPlan(
        "K",
        "cells",
        "cells",
        none,
        none,
        np.zeros(1, np.int64),
        columns,
        {"assemble": place},
    )


@settings(deadline=None, max_examples=effort.examples(60))
@given(
    st.integers(1, 90),
    st.integers(1, 200),
    st.integers(1, 40),
    st.integers(0, 10**6),
    st.booleans(),
)
def test_nonzeros_are_reached_through_their_places(n, nonzeros, block_size, seed, lists):
    maps, sizes = _mesh(n, 20, 7, seed)
    entries = Arg("K", INC, 2, "f8", "edges->cells", (0, 1), columns="edges->cells")
    loop = Loop("assemble", "edges", (Arg("w", READ), entries))
    variant = _variant(loop, maps, sizes, block_size, lists)
    matrix = _matrix(n, nonzeros, seed)
    found = traffic(loop, *with_places(loop, maps, sizes, {"K": matrix}), variant)
    place, groups = matrix.place["assemble"], _groups(variant)
    touched = [
        {p // 4 for p in place[list(group)].ravel().tolist() if p >= 0}
        for group, _ in groups
    ]
    assert found.reads["indirect"] == found.writes["indirect"] == sum(map(len, touched))
    rows = [{p // 2 for p in places} for _, places in groups]
    assert found.reads["maps"] == sum(map(len, rows))
    # without places the elements store their matrices: 32 bytes each
    apart = traffic(loop, maps, sizes, variant)
    assert apart.writes == {"indirect": 0, "direct": n}


def test_a_row_of_edges_by_hand():
    # Two blocks of two edges on cells 0 1 2 and 2 3 4; a cell's increments fill one sector.
    table = np.array([[0, 1], [1, 2], [2, 3], [3, 4]])
    maps = {"edges->cells": SetMap("edges->cells", "edges", "cells", table)}
    sizes = {"edges": 4, "cells": 5}
    loop = Loop("sum", "edges", (Arg("res", INC, 4, "f8", "edges->cells", (0, 1)),))
    variant = baseline_variant(loop, maps, sizes, 2)
    found = traffic(loop, maps, sizes, variant)
    assert found.writes == {"indirect": 6, "direct": 0}
    # A block reads its number, its colours, two pairs of offsets, a list, two columns, a colour.
    assert found.reads == {"indirect": 6, "direct": 0, "maps": 0, "plan": 2 * 8}
    # By components, cells 0 to 3 share a sector and cell 4 is alone: 1 and 2 for each of four.
    assert traffic(loop, maps, sizes, variant, layout="soa").writes["indirect"] == 12


def test_nothing_moves_in_an_empty_set():
    maps, sizes = _mesh(0, 3, 3, 0)
    loop = Loop("flux", "edges", LOOPS["flux"])
    variant = baseline_variant(loop, maps, sizes, 4)
    found = traffic(loop, maps, sizes, variant)
    assert (found.read, found.written) == (0, 0)


def test_what_it_cannot_count():
    maps, sizes = _mesh(4, 3, 3, 0)
    loop = Loop("direct", "edges", LOOPS["direct"])
    with pytest.raises(MeshprepError, match="layout 'csr' is unknown"):
        traffic(loop, maps, sizes, baseline_variant(loop, maps, sizes, 4), layout="csr")
