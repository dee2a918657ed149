"""Predicted sectors against sets of byte addresses, gathered element by element."""

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meshprep.colour import colour_whole_set
from meshprep.loops.reach import maps_by_place, written_table
from meshprep.metrics.traffic import LAYOUTS, STAGED, THREADS, Widths, traffic
from meshprep.pipeline.variants import baseline_variant
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
        f"edges->{to}": SetMap(f"edges->{to}", "edges", to, random.integers(0, sizes[to], (n, 2)))
        for to in ("cells", "nodes")
    }
    return maps, sizes


def _sectors(name, start, nbytes):
    return {(name, byte // 32) for byte in range(start, start + nbytes)}


def _values(name, i, dim, item, layout):
    if layout == "aos":
        return _sectors(name, i * dim * item, dim * item)
    return set().union(*(_sectors((name, c), i * item, item) for c in range(dim)))


def _groups(loop, maps, sizes, variant, staged):
    """The elements that share what they fetch, and where their maps and colours lie."""
    if staged != "none":
        ranges = [list(range(a, b)) for a, b in pairwise(variant.block_offset.tolist())]
        listed = variant.elements
        return [(r if listed is None else listed[r].tolist(), r) for r in ranges]
    colours = colour_whole_set(*written_table(loop, maps, sizes))
    of = [np.flatnonzero(colours.colour == c).tolist() for c in range(colours.count)]
    warps = [members[s : s + 32] for members in of for s in range(0, len(members), 32)]
    return [(warp, warp) for warp in warps]


def _slow(loop, maps, sizes, variant, staged, layout, widths):
    """Reads and writes by kind: for each group the union of what its elements touch."""
    reads, writes, before = Counter(), Counter(), Counter()
    groups = _groups(loop, maps, sizes, variant, staged)
    gathers = variant.elements is not None and any(not a.map and not a.is_global for a in loop.args)
    written = {(a.name, a.map and maps[a.map].to_set) for a in loop.args if a.conflicts}
    elements_before = 0
    for b, (group, places) in enumerate(groups):
        read = {kind: set() for kind in ("indirect", "direct", "maps", "plan")}
        write = {kind: set() for kind in ("indirect", "direct")}
        lists = {}
        for a in (a for a in loop.args if not a.is_global):
            to_set = maps[a.map].to_set if a.map else None
            key = (a.name, to_set)
            item = int(a.dtype[1])
            kept = to_set and (staged == "all" or (staged == "increments" and key in written))
            points = group if a.map is None else maps[a.map].table[list(group)][:, a.index].ravel()
            if kept:
                tables = [maps[m].table for m in loop.maps if maps[m].to_set == to_set]
                points = {p for t in tables for p in t[list(group)].ravel().tolist()}
                lists[to_set] = points
                for i in a.index:
                    for p in places:
                        read["plan"] |= _sectors((a.map, i), p * widths.local, widths.local)
            elif to_set:
                for p in places:
                    read["maps"] |= _sectors(a.map, p * 8, 8)
            touched = set().union(*(_values(key, int(p), a.dim, item, layout) for p in points))
            kind = "indirect" if to_set else "direct"
            if a.access is not WRITE:
                read[kind] |= touched
            if a.access is not READ:
                write[kind] |= touched
        if staged != "none":
            read["plan"] |= {"order"} | _sectors("offset", 8 * b, 16)
            for to_set, points in lists.items():
                read["plan"] |= _sectors((to_set, "offset"), 8 * b, 16)
                read["plan"] |= _sectors((to_set, "list"), 4 * before[to_set], 4 * len(points))
                before[to_set] += len(points)
            if written:
                read["plan"] |= {"count"}
                for p in places:
                    read["plan"] |= _sectors("colour", p * widths.colour, widths.colour)
            if gathers:
                for p in places:
                    read["plan"] |= _sectors("elements", 4 * p, 4)
        elif _coloured(loop, maps, sizes):
            read["plan"] |= _sectors("order", 4 * elements_before, 4 * len(group))
        elements_before += len(group)
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


def _coloured(loop, maps, sizes):
    return colour_whole_set(*written_table(loop, maps, sizes)).count > 1


@settings(deadline=None, max_examples=150)
@given(
    st.sampled_from(sorted(LOOPS)),
    st.sampled_from(STAGED[:3]),
    st.sampled_from(LAYOUTS),
    st.integers(1, 90),
    st.integers(1, 60),
    st.integers(1, 60),
    st.integers(1, 40),
    st.sampled_from([Widths(), Widths(local=4, colour=4)]),
    st.integers(0, 10**6),
    st.booleans(),
)
def test_against_sets_of_addresses(
    name, staged, layout, n, n_cells, n_nodes, block_size, widths, seed, lists
):
    maps, sizes = _mesh(n, n_cells, n_nodes, seed)
    loop = Loop(name, "edges", LOOPS[name])
    variant = _variant(loop, maps, sizes, block_size, lists)
    found = traffic(loop, maps, sizes, variant, staged=staged, layout=layout, widths=widths)
    reads, writes = _slow(loop, maps, sizes, variant, staged, layout, widths)
    assert found.reads == dict(reads)
    assert found.writes == dict(writes)
    assert (found.read, found.written) == (reads.total(), writes.total())


@settings(deadline=None, max_examples=30)
@given(st.sampled_from(LAYOUTS), st.integers(1, 700), st.integers(1, 300), st.integers(0, 10**6))
def test_atomics_are_counted_instruction_by_instruction(layout, n, n_cells, seed):
    maps, sizes = _mesh(n, n_cells, 7, seed)
    loop = Loop("flux", "edges", LOOPS["flux"])
    variant = baseline_variant(loop, maps, sizes, 5)
    found = traffic(loop, maps, sizes, variant, staged="atomics", layout=layout)
    table = maps["edges->cells"].table
    met = 0
    for start in range(0, n, 32):
        for column in (0, 1):
            for k in range(3):
                cells = table[start : start + 32, column].tolist()
                starts = [8 * (3 * c + k) if layout == "aos" else 8 * c for c in cells]
                met += len({byte // 32 for byte in starts})
    assert found.writes["indirect"] == met
    # What is only read is shared by runs of elements, as by blocks of that size without staging.
    read_only = Loop("flux", "edges", tuple(a for a in LOOPS["flux"] if a.access is not INC))
    runs = baseline_variant(read_only, maps, sizes, THREADS)
    shared = traffic(read_only, maps, sizes, runs, staged="increments", layout=layout)
    assert found.reads["indirect"] == shared.reads["indirect"]
    assert found.reads["direct"] == shared.reads["direct"]
    assert found.reads["plan"] == 0


def _matrix(n, nonzeros, seed):
    """Places by chance of the four entries of each edge, some without; nothing else counts."""
    place = np.random.default_rng(seed).integers(-1, nonzeros, (n, 4)).astype(np.int32)
    none = np.zeros(0, np.int32)
    columns = np.zeros(nonzeros, np.int32)
    return MatrixPlan(
        "K", "cells", "cells", none, none, np.zeros(1, np.int64), columns, {"assemble": place}
    )


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(STAGED),
    st.integers(1, 90),
    st.integers(1, 200),
    st.integers(1, 40),
    st.integers(0, 10**6),
    st.booleans(),
)
def test_nonzeros_are_reached_through_their_places(staged, n, nonzeros, block_size, seed, lists):
    maps, sizes = _mesh(n, 20, 7, seed)
    entries = Arg("K", INC, 2, "f8", "edges->cells", (0, 1), columns="edges->cells")
    loop = Loop("assemble", "edges", (Arg("w", READ), entries))
    variant = _variant(loop, maps, sizes, block_size, lists)
    matrix = _matrix(n, nonzeros, seed)
    found = traffic(loop, *with_places(loop, maps, sizes, {"K": matrix}), variant, staged=staged)
    place = matrix.place["assemble"]
    if staged == "atomics":
        met = [place[s : s + 32, k] for s in range(0, n, 32) for k in range(4)]
        assert found.reads["indirect"] == 0
        assert found.writes["indirect"] == sum(len(np.unique(p[p >= 0] // 4)) for p in met)
        return
    groups = _groups(loop, maps, sizes, variant, staged)
    touched = [
        {p // 4 for p in place[list(group)].ravel().tolist() if p >= 0} for group, _ in groups
    ]
    assert found.reads["indirect"] == found.writes["indirect"] == sum(map(len, touched))
    rows = [{p // 2 for p in places} for _, places in groups]
    assert found.reads["maps"] == sum(map(len, rows))
    # without places the elements store their matrices: 32 bytes each
    apart = traffic(loop, maps, sizes, variant, staged=staged)
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
    # Edges 0 and 2 are of one colour, 1 and 3 of the other: four cells either.
    loose = traffic(loop, maps, sizes, variant, staged="none")
    assert loose.writes["indirect"] == 8
    assert loose.reads == {"indirect": 8, "direct": 0, "maps": 2, "plan": 2}


def test_nothing_moves_in_an_empty_set():
    maps, sizes = _mesh(0, 3, 3, 0)
    loop = Loop("flux", "edges", LOOPS["flux"])
    variant = baseline_variant(loop, maps, sizes, 4)
    for staged in STAGED:
        found = traffic(loop, maps, sizes, variant, staged=staged)
        assert (found.read, found.written) == (0, 0)


def test_what_it_cannot_count():
    maps, sizes = _mesh(4, 3, 3, 0)
    loop = Loop("direct", "edges", LOOPS["direct"])
    variant = baseline_variant(loop, maps, sizes, 4)
    with pytest.raises(MeshprepError, match="staged 'some' is unknown: use all, increments, none"):
        traffic(loop, maps, sizes, variant, staged="some")
    with pytest.raises(MeshprepError, match="layout 'csr' is unknown"):
        traffic(loop, maps, sizes, variant, layout="csr")
    with pytest.raises(MeshprepError, match="give at least 1"):
        Widths(local=0)
