"""Lines, rectangles and bricks of elements on structured meshes [S19 section 3.1.6].

They bracket what a partitioner can do: a line has few thread colours and little reuse, a brick
much of both. The structure is found from centroids, so that the mesh may come in any order: those
of a mesh of straight lines have few distinct values along each axis. Cells stand on all
combinations of them. Edges and faces stand on some: one direction between two cells along x,
another along y; so do the two triangles of a split square. These elements share *sites*, each with
one element of every kind.
"""

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from meshprep_runtime.errors import MeshprepError
from meshprep_runtime.types.maps import Float64s, Int32s, Int64s, distinct, offsets_of

from .blocks_of import BlockProblem, Blocks, blocks_of
from .options import Option
from .repair import repair

SHAPES = ("line", "rectangle", "brick")

OPTIONS: Mapping[str, Option] = {
    "shape": Option(str, "brick", "line, rectangle, brick, or sites along each axis such as 8x8x4")
}

# Values closer than this share of the axis, or of the longest axis, are one: coordinates read
# from text are rounded, and flat meshes are not quite flat.
SAME, SAME_OVERALL = 1e-7, 1e-10
# A lattice fills at least this share of its box; scattered centroids hardly fill any.
FILLED = 0.25


@dataclass(frozen=True, eq=False)
class Lattice:
    """Sites in whole numbers, and the elements on them."""

    position: Int32s  # (n, d): the site of every element, from 0 on; d is 1 to 3
    # The kinds of elements: a site has no more, but for a few where a lattice is broken.
    per_site: int


def structured(problem: BlockProblem, options: Mapping[str, Any]) -> Blocks:
    """Cut a structured mesh into lines, rectangles or bricks of at most S elements.

    Elements may stand in any order: centroids on lines along the axes show the structure. Weights
    are not used. ``line`` follows the longest axis, line after line, in full blocks; ``rectangle``
    is one layer thick; ``brick`` is a rectangle in two dimensions; explicit sizes follow the axes
    of the coordinates. Blocks stand in raster order; their ``notes``: elements moved to keep the
    cap where a lattice is broken. O(n log n).

    Raises MeshprepError where there is no structure, and for shapes that do not fit the mesh or the
    block size.
    """
    wanted = _sizes(options["shape"])
    n, cap = problem.n, problem.block_size
    if n <= cap or cap == 1 or not problem.table.size:
        return blocks_of(np.arange(n) // cap, n)
    lattice = _lattice(problem)
    if wanted is not None:
        _check(wanted, lattice, options["shape"], cap)
    if options["shape"] == "line":
        return blocks_of(_line_rank(lattice) // cap, n, {"moved": 0})
    block = _tiles(lattice, options["shape"], wanted, cap)
    n_blocks, moved = int(block.max()) + 1, 0
    if np.bincount(block).max() > cap:
        repaired = repair(problem.table, problem.n_points, block, max(n_blocks, -(-n // cap)), cap)
        block, n_blocks, moved = repaired.block, repaired.n_blocks, repaired.notes["moved"]
    return blocks_of(block, n_blocks, {"moved": moved}, keep_numbers=True)


def best_tile(extent: Sequence[int], sites: int, layers: bool) -> tuple[int, ...]:
    """How many tiles along each axis, so that each has few sites and little is cut.

    ``extent`` are the sites of the box along its one to three axes, and ``sites`` the most that a
    tile may have. With ``layers``, in a box of three axes, tiles are one site thick along one of
    them. O(sites log sites) for three axes.
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


def _line_rank(lattice: Lattice) -> Int64s:
    """The place of every element along the lines, one line after the other."""
    position = lattice.position
    longest_first = np.argsort(-position.max(axis=0), kind="stable")
    rank = np.empty(len(position), np.int64)
    rank[np.lexsort(position.T[longest_first])] = np.arange(rank.size)
    return rank


def _tiles(lattice: Lattice, shape: str, sizes: tuple[int, ...] | None, cap: int) -> Int32s:
    """The tile of every element, numbered in raster order."""
    position = lattice.position
    extent = (position.max(axis=0) + 1).tolist()
    if sizes is None:
        sites = max(1, cap // lattice.per_site)
        tiles = best_tile(extent, sites, shape == "rectangle")
        tile = position * np.asarray(tiles, np.int64) // extent
    else:
        tile = position // np.asarray(sizes)
    number = np.ravel_multi_index(tuple(tile.T[::-1]), tuple(tile.max(axis=0)[::-1] + 1))
    used = np.bincount(number) > 0
    return (np.cumsum(used) - 1)[number].astype(np.int32)


def lattice_of_centroids(coordinates: Float64s) -> Lattice | None:
    """The lattice that centroids stand on, or None where they stand on none.

    They may be in any order. The lines may be spaced unevenly, but must be parallel to the axes.
    O(n log n).
    """
    limit = SAME_OVERALL * np.ptp(coordinates, axis=0).max()
    columns = [_ranks(axis, limit) for axis in coordinates.T]
    extent = [int(rank.max()) + 1 for rank in columns]
    kept = [i for i, count in enumerate(extent) if count > 1]
    if not 1 <= len(kept) <= 3 or np.prod([extent[i] for i in kept], dtype=float) > 2.0**62:
        return None
    fine = np.column_stack([columns[i] for i in kept])
    kinds = int(np.count_nonzero(np.bincount(_keys(fine % 2))))
    staggered = kinds < 2 ** len(kept)
    position = fine // 2 if staggered else fine
    least = FILLED * np.prod(position.max(axis=0) + 1.0)
    if (
        len(fine) < least
        or distinct(_keys(fine)).size < len(fine)
        or distinct(_keys(position)).size < least
    ):
        return None
    return Lattice(position, kinds if staggered else 1)


def _ranks(values: Float64s, least: float) -> Int32s:
    """The rank of every value among the distinct ones, at least ``least`` apart."""
    order = np.argsort(values)
    ascending = values[order]
    limit = max(SAME * (ascending[-1] - ascending[0]), least)
    steps = offsets_of(np.diff(ascending) > limit)
    rank = np.empty(values.size, np.int32)
    rank[order] = steps
    return rank


def _keys(position: Int32s) -> Int64s:
    """One number for each position."""
    key = np.zeros(len(position), np.int64)
    for axis in position.T:
        key = key * (int(axis.max()) + 1) + axis
    return key
