"""Bytes that tiles move, counted by hand on a schedule of one tile."""

import numpy as np
import pytest

from meshprep_runtime import Access, Arg, Loop
from meshprep_runtime.plan.chains.tiles import (
    Kept,
    LocalSelection,
    LocalSet,
    TilePlan,
    tiled_bytes,
    untiled_bytes,
)
from meshprep_runtime.types.maps import SetMap


def held(n):
    """A set of which the one tile owns and holds n elements."""
    return LocalSet.of_elements(np.array([0, n]), np.arange(n, dtype=np.int32), np.array([n]))


@pytest.mark.parametrize("path", ["edges->cells->parts", "edges->far"])
def test_a_map_leads_to_its_set_whatever_its_name(path):
    args = (Arg("q", Access.READ, 2, "f8"), Arg("sum", Access.INC, 3, "f8", path, (0, 1)))
    tiles = TilePlan(
        loops=(Loop("add", "edges", args),),
        sets={"edges": held(5), "parts": held(4)},
        runs=(LocalSelection(np.array([5])),),
        copies={"sum": LocalSelection(np.array([4]))},
        kept=Kept(),
    )
    # copied and stored: four sums of three; then the list of parts, and the map of uint16
    maps = {path: SetMap(path, "edges", "parts", np.zeros((5, 2), np.int32))}
    assert tiled_bytes(tiles, maps) == 4 * 24 + 4 * 24 + 4 * 4 + 5 * 2 * 2


def test_loops_alone_move_what_each_of_them_reaches():
    ends = "edges->cells"
    flux = (
        Arg("q", Access.READ, 2, "f8", ends, (0, 1)),
        Arg("r", Access.INC, 1, "f8", ends, (0, 1)),
    )
    update = (Arg("q", Access.RW, 2, "f8"), Arg("r", Access.READ), Arg("w", Access.READ, 1, "f4"))
    loops = (Loop("flux", "edges", flux), Loop("update", "cells", update))
    maps = {ends: SetMap(ends, "edges", "cells", np.arange(10).reshape(5, 2) % 4)}
    sizes = {"edges": 5, "cells": 4}
    table, q, r, w = 5 * 2 * 4, 4 * 16, 4 * 8, 4 * 4
    loop_by_loop = (q + 2 * r + table) + (2 * q + r + w)
    assert untiled_bytes(loops, maps, sizes) == loop_by_loop
