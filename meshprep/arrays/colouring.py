"""Colours of elements, and of blocks and the threads inside them, from arrays."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError

from ..colouring import colour_blocks, colour_threads
from ..kernels import Int32s
from .inputs import Elements, Graph, as_numpy, elements_or_graph


class BlockColouring(NamedTuple):
    """Colours of blocks, and of the elements inside each block.

    Attributes
    ----------
    blocks : (n_blocks,) array of int32
        Blocks of one colour share no point, so that they may run at once.
    threads : (n,) array of int32
        From 0 in every block; elements of one colour in a block share no point.
    """

    blocks: Int32s
    threads: Int32s


def colour(
    elements: Any = None,
    *,
    blocks: Any = None,
    edge_index: Any = None,
    n_points: int | None = None,
) -> Any:
    """Colour elements so that no two of one colour share a point.

    Parameters
    ----------
    elements : array, pair of arrays, sparse matrix, graph or mesh
        (n, k) whole numbers from 0, the points of each element; or (offset, index) of rows
        of different lengths, a mesh, or a rectangular SciPy matrix with a row for each
        element. Of a graph (a square matrix, networkx) the vertices are coloured:
        neighbours get different colours.
    blocks : (n,) array of int, optional
        The block of each element, from 0, as :func:`meshprep.blocks` gives it.
    edge_index : (2, n_edges) array or pair of arrays, optional
        In place of ``elements``: the ends of the edges of a graph.
    n_points : int, optional
        How many points there are, or vertices of ``edge_index``.

    Returns
    -------
    (n,) array of int32, or BlockColouring
        The colour of each element, from 0, without gaps. With ``blocks`` the colours
        ``blocks`` of the blocks and ``threads`` of the elements inside their blocks, which
        begin with 0 in every block.

    Raises
    ------
    MeshprepError
        For shapes and numbers that do not fit.

    Notes
    -----
    Greedy with bit masks [G10 section 9.1]; where that misses the largest number of
    elements on a point, which no colouring can be below, by saturation. Graphs and ragged
    rows in smallest-last order. O(sum over points of their elements squared) at most. The
    same colours in every run.

    Examples
    --------
    >>> import meshprep
    >>> meshprep.colour([[0, 1], [1, 2], [2, 3]]).tolist()
    [0, 1, 0]
    >>> coloured = meshprep.colour([[0, 1], [1, 2], [2, 3]], blocks=[0, 0, 1])
    >>> coloured.blocks.tolist(), coloured.threads.tolist()
    ([1, 0], [0, 1, 0])
    """
    source = elements_or_graph(elements, edge_index=edge_index, n_points=n_points)
    if blocks is not None:
        incidence = source.incidence() if isinstance(source, Graph) else source
        return _colour_inside_blocks(incidence, block_of_each(blocks, incidence.n))
    if isinstance(source, Graph) or source.arity is None:
        return _colour_rows(source.incidence() if isinstance(source, Graph) else source)
    # One block holds all elements.
    whole = np.array([0, source.n], np.int64)
    found = colour_threads(source.table(), source.n_points, whole)
    return found.colour.astype(np.int32)


def _colour_rows(elements: Elements) -> Int32s:
    """Colour rows of different lengths, each as if it were a block of single points."""
    points = elements.rows.index.reshape(-1, 1)
    found = colour_blocks(points, elements.n_points, elements.rows.offset)
    return _colour_of_each(found.order, found.offset)


def _colour_of_each(order: Int32s, offset: NDArray[np.int64]) -> Int32s:
    """The colour of each block, where blocks are listed colour by colour."""
    colour = np.empty(order.size, np.int32)
    numbers = np.arange(offset.size - 1, dtype=np.int32)
    colour[order] = np.repeat(numbers, np.diff(offset))
    return colour


def _colour_inside_blocks(elements: Elements, block: Int32s) -> BlockColouring:
    """Colour the blocks, and the elements of each."""
    n_blocks = int(block.max(initial=-1)) + 1
    table = elements.table()
    # Bring the elements of each block together; blocks may be empty.
    order = np.argsort(block, kind="stable")
    size_of_block = np.bincount(block, minlength=n_blocks)
    offset = np.concatenate([[0], np.cumsum(size_of_block)])
    sorted_table = np.ascontiguousarray(table[order])
    threads = np.empty(elements.n, np.int32)
    threads[order] = colour_threads(sorted_table, elements.n_points, offset).colour
    found = colour_blocks(sorted_table, elements.n_points, offset)
    return BlockColouring(
        blocks=_colour_of_each(found.order, found.offset), threads=threads
    )


def block_of_each(blocks: Any, n: int) -> Int32s:
    """The block of each of ``n`` elements, checked."""
    block = as_numpy(blocks)
    whole = block.dtype.kind in "iu" or not block.size
    if block.shape != (n,) or not whole:
        raise MeshprepError(
            f"blocks have shape {block.shape} and dtype {block.dtype}: give the number of "
            f"the block of each of {n} elements"
        )
    # Threads mark blocks in an array: numbers far above the elements would not fit.
    if block.size and not 0 <= int(block.min()) <= int(block.max()) < max(n, 1):
        raise MeshprepError(
            f"blocks are numbered {block.min()}..{block.max()}: number them from 0, at "
            f"most as many as there are elements ({n})"
        )
    return block.astype(np.int32)
