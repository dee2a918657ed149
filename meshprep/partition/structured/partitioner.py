"""Lines, rectangles and bricks of elements on structured meshes [S19 section 3.1.6].

They bracket what a partitioner can do: a line has few thread colours and little reuse, a brick
much of both. The structure is found from centroids (:mod:`lattice`), so that the mesh may come in
any order.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ..blocks_of import Blocks, blocks_of
from ..options import Option
from ..problem import BlockProblem
from ..repair import repair
from .lattice import Lattice, lattice_of_centroids

SHAPES = ("line", "rectangle", "brick")

OPTIONS: Mapping[str, Option] = {
    "shape": Option(
        str,
        "brick",
        "line, rectangle, brick, or sites along each axis such as 8x8x4",
    ),
}


def structured(problem: BlockProblem, options: Mapping[str, Any]) -> Blocks:
    """Cut a structured mesh into lines, rectangles or bricks of at most S elements.

    Parameters
    ----------
    problem : BlockProblem
        In any order. Centroids on lines along the axes show the structure. Weights are not used.
    options : mapping
        Every name of :data:`OPTIONS`. ``line`` follows the longest axis, line after line, in full
        blocks; ``rectangle`` is one layer thick; ``brick`` is a rectangle in two dimensions.
        Explicit sizes follow the axes of the coordinates.

    Returns
    -------
    Blocks
        In raster order. ``notes``: lattice parts found, and elements moved to keep the cap where
        a lattice is broken.

    Raises
    ------
    MeshprepError
        Where there is no structure, and for shapes that do not fit the mesh or the block size.

    Notes
    -----
    O(n log n).
    """
    wanted = _sizes(options["shape"])
    n, cap = problem.n, problem.block_size
    if n <= cap or cap == 1 or not problem.table.size:
        return blocks_of(np.arange(n) // cap, n)
    lattice = _lattice(problem)
    if wanted is not None:
        _check(wanted, lattice, options["shape"], cap)
    if options["shape"] == "line":
        return blocks_of(_line_rank(lattice) // cap, n, {"parts": _n_parts(lattice), "moved": 0})
    block = _tiles(lattice, options["shape"], wanted, cap)
    n_blocks, moved = int(block.max()) + 1, 0
    if np.bincount(block).max() > cap:
        repaired = repair(problem.table, problem.n_points, block, max(n_blocks, -(-n // cap)), cap)
        block, n_blocks, moved = repaired.block, repaired.n_blocks, repaired.notes["moved"]
    notes = {"parts": _n_parts(lattice), "moved": moved}
    return blocks_of(block, n_blocks, notes, keep_numbers=True)


def best_tile(extent: Sequence[int], sites: int, layers: bool) -> tuple[int, ...]:
    """How many tiles along each axis, so that each has few sites and little is cut.

    Parameters
    ----------
    extent : sequence of int
        Sites of the box along its one to three axes.
    sites : int
        The most that a tile may have, at least 1.
    layers : bool
        In a box of three axes, tiles are one site thick along one of them.

    O(sites log sites) for three axes.
    """
    whole = math.prod(extent)
    best: tuple[float, tuple[int, ...]] = (math.inf, ())
    for tile in _fitting(extent, sites):
        if layers and len(extent) == 3 and 1 not in tile:
            continue
        tiles = tuple(-(-e // t) for e, t in zip(extent, tile, strict=True))
        cut = sum((count - 1) * whole / e for count, e in zip(tiles, extent, strict=True))
        best = min(best, (cut, tiles))
    return best[1]


def _fitting(extent: Sequence[int], sites: int) -> Iterator[tuple[int, ...]]:
    """Every tile that cannot grow along its last axis."""
    *inner, last = extent
    for head in itertools.product(*(range(1, min(e, sites) + 1) for e in inner)):
        room = sites // math.prod(head)
        if room:
            yield (*head, min(room, last))


def _sizes(shape: str) -> tuple[int, ...] | None:
    """The sites of an explicit shape; None for a named one."""
    if shape in SHAPES:
        return None
    if re.fullmatch(r"[1-9]\d{0,8}(x[1-9]\d{0,8}){0,2}", shape) is None:
        raise MeshprepError(
            f"option 'shape' is '{shape}', must be {', '.join(SHAPES)} or sizes such as 8x8x4"
        )
    return tuple(int(size) for size in shape.split("x"))


def _lattice(problem: BlockProblem) -> Lattice:
    where = problem.coordinates
    found = None if where is None else lattice_of_centroids(where)
    if found is None:
        centroids = "there are no coordinates" if where is None else "centroids are on no lattice"
        raise MeshprepError(
            f"partitioner 'structured' finds no structure in {problem.n} elements: {centroids}: "
            "choose another, such as blocks"
        )
    return found


def _longest_first(lattice: Lattice) -> Lattice:
    order = np.argsort(-lattice.position.max(axis=0), kind="stable")
    position = np.ascontiguousarray(lattice.position[:, order])
    return Lattice(position, lattice.part, lattice.per_site)


def _n_parts(lattice: Lattice) -> int:
    return int(lattice.part.max()) + 1


def _check(sizes: tuple[int, ...], lattice: Lattice, shape: str, cap: int) -> None:
    extent = lattice.position.max(axis=0) + 1
    if len(sizes) != extent.size:
        raise MeshprepError(
            f"shape '{shape}' has {len(sizes)} sizes, but the mesh is structured along "
            f"{extent.size}: give sizes for {'x'.join(map(str, extent))} sites"
        )
    most = math.prod(np.minimum(sizes, extent).tolist()) * lattice.per_site
    if most > cap:
        raise MeshprepError(
            f"shape '{shape}' has up to {most} elements, more than the block size of {cap}: "
            "give a smaller shape or a larger block size"
        )


def _line_rank(lattice: Lattice) -> NDArray[np.int64]:
    """The place of every element along the lines, one line after the other."""
    position = _longest_first(lattice).position
    rank = np.empty(len(position), np.int64)
    rank[np.lexsort((*position.T, lattice.part))] = np.arange(rank.size)
    return rank


def _tiles(
    lattice: Lattice, shape: str, sizes: tuple[int, ...] | None, cap: int
) -> NDArray[np.int32]:
    """The tile of every element, numbered part by part in raster order."""
    block = np.empty(len(lattice.position), np.int32)
    base = 0
    members = np.split(
        np.argsort(lattice.part, kind="stable"), np.cumsum(np.bincount(lattice.part))[:-1]
    )
    for rows in members:
        position = lattice.position[rows]
        extent = (position.max(axis=0) + 1).tolist()
        if sizes is None:
            sites = max(1, cap // lattice.per_site)
            tiles = best_tile(extent, sites, shape == "rectangle")
            tile = position * np.asarray(tiles, np.int64) // extent
        else:
            tile = position // np.asarray(sizes)
        number = np.ravel_multi_index(tuple(tile.T[::-1]), tuple(tile.max(axis=0)[::-1] + 1))
        used = np.bincount(number) > 0
        block[rows] = base - 1 + np.cumsum(used)[number]
        base += int(np.count_nonzero(used))
    return block
