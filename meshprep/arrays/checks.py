"""Proofs of colours and of parts, of anybody's: what a test or a CI step calls."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.errors import MeshprepError, listed
from meshprep_runtime.types.maps import rows_of_entries

from ..kernels import Int64s
from ..mesh.incidence import Csr
from .colouring import BlockColouring, block_of_each
from .inputs import Elements, as_numpy, elements_of, elements_or_graph
from .weights import part_caps, weight_columns


class PartitionFigures(NamedTuple):
    """What :func:`check_partition` counts."""

    cut: int  # edges between parts; of elements, pairs of neighbours in two parts
    shared: int  # points that elements of several parts touch; of a graph its cut
    # The largest weight of a part over its share, of all columns of weights: 1 is even.
    imbalance: float


def check_colours(
    elements: Any = None,
    colour: Any = None,
    *,
    blocks: Any = None,
    edge_index: Any = None,
    n_points: int | None = None,
) -> None:
    """Prove that no two elements of one colour share a point.

    Parameters
    ----------
    elements, edge_index, n_points
        As of :func:`meshprep.colour`.
    colour : (n,) array of int, or pair of arrays
        The colour of each element, whoever found it. With ``blocks`` a pair: colours of the
        blocks, and of the elements inside their blocks.
    blocks : (n,) array of int, optional
        The block of each element.

    Raises
    ------
    MeshprepError
        Where two elements, or two blocks, of one colour share a point; the message names
        the first pair. Also for shapes and numbers that do not fit.

    Notes
    -----
    By sorting all pairs of a colour and a point. O(m log m) for m entries.

    Examples
    --------
    >>> import meshprep
    >>> meshprep.check_colours([[0, 1], [1, 2], [2, 3]], [0, 1, 0])
    >>> meshprep.check_colours([[0, 1], [1, 2], [2, 3]], [0, 1, 1])
    Traceback (most recent call last):
    meshprep_runtime.errors.MeshprepError: elements 1 and 2 have colour 1 and share point 2
    """
    source = elements_of(elements, edge_index=edge_index, n_points=n_points)
    element = rows_of_entries(source.rows.offset)
    point = source.rows.index.astype(np.int64)
    if blocks is None:
        own = _numbers_of(colour, source.n, "colours", "element")
        _refuse_shared("elements", element, own[element], point)
        return
    if not isinstance(colour, tuple) or len(colour) != 2:
        raise MeshprepError(
            "with blocks colours are a pair: those of the blocks, and those of the "
            "elements inside their blocks"
        )
    block = block_of_each(blocks, source.n)
    n_blocks = int(block.max(initial=-1)) + 1
    coloured = BlockColouring(*colour)
    of_block = _numbers_of(coloured.blocks, n_blocks, "colours", "block")
    of_thread = _numbers_of(coloured.threads, source.n, "colours", "element")

    # Two blocks of one colour share no point.
    block_of_entry = block[element]
    _refuse_shared("blocks", block_of_entry, of_block[block_of_entry], point)
    # Inside a block two elements of one colour share no point.
    inside = block.astype(np.int64) * (int(of_thread.max(initial=0)) + 1) + of_thread
    _refuse_shared("elements", element, inside[element], point, shown=of_thread)


def _refuse_shared(
    kind: str,
    owner: NDArray[Any],
    colour: NDArray[Any],
    point: Int64s,
    shown: NDArray[Any] | None = None,
) -> None:
    """Refuse two different owners of entries with one colour and one point."""
    # Sorted by colour and point, two owners that share both stand side by side.
    order = np.lexsort((owner, point, colour))
    owner, colour, point = owner[order], colour[order], point[order]
    same_colour = colour[1:] == colour[:-1]
    same_point = point[1:] == point[:-1]
    other_owner = owner[1:] != owner[:-1]
    wrong = np.flatnonzero(same_colour & same_point & other_owner)
    if not wrong.size:
        return
    # Name the pair with the lowest numbers.
    by_lower_number = np.lexsort((owner[wrong + 1], owner[wrong]))
    first = wrong[by_lower_number[0]]
    number = colour[first] if shown is None else shown[owner[first]]
    others = ""
    if wrong.size > 1:
        others = f"; {wrong.size - 1:,} more pairs are wrong"
    raise MeshprepError(
        f"{kind} {owner[first]} and {owner[first + 1]} have colour {number} and share "
        f"point {point[first]}{others}"
    )


def _numbers_of(values: Any, count: int, name: str, owner: str) -> NDArray[Any]:
    """Whole numbers from 0, one for each of ``count`` owners."""
    if values is None:
        raise MeshprepError(f"give the {name}, a number for each {owner}")
    numbers = as_numpy(values)
    whole = numbers.dtype.kind in "iu" or not numbers.size
    if numbers.shape != (count,) or not whole:
        raise MeshprepError(
            f"{name} have shape {numbers.shape} and dtype {numbers.dtype}: give a whole "
            f"number for each {owner}, {count}"
        )
    if numbers.size and int(numbers.min()) < 0:
        raise MeshprepError(
            f"{name}: {owner} {int(numbers.argmin())} has {numbers.min()}: give numbers "
            "from 0"
        )
    return numbers.astype(np.int64)


def check_partition(
    graph: Any = None,
    owner: Any = None,
    parts: int | None = None,
    *,
    weights: Any = None,
    shares: Any = None,
    room: float = 0.03,
    connected: bool = False,
    edge_index: Any = None,
    n_points: int | None = None,
) -> PartitionFigures:
    """Prove that parts hold no more than they may, and count what they share.

    Parameters
    ----------
    graph, weights, shares, room, edge_index, n_points
        As of :func:`meshprep.partition`.
    owner : (n,) array of int
        The part of each vertex or element, whoever found it.
    parts : int, optional
        How many parts there are; without it the last one is the last owner.
    connected : bool
        Whether every part must be connected.

    Returns
    -------
    PartitionFigures
        Edges cut, points shared, and the imbalance.

    Raises
    ------
    MeshprepError
        Where a part has more than its share and the room, has no vertex although there are
        enough, or is not connected; the message names the first. Also for shapes and
        numbers that do not fit.

    Notes
    -----
    O(n + edges).

    Examples
    --------
    >>> import meshprep
    >>> path = [[0, 1, 2], [1, 2, 3]]
    >>> meshprep.check_partition(edge_index=path, owner=[0, 0, 1, 1]).cut
    1
    """
    source = elements_or_graph(graph, edge_index=edge_index, n_points=n_points)
    # Refuse parts that do not exist, before their loads are compared.
    owners = _numbers_of(owner, source.n, "owners", "vertex")
    if parts is None:
        parts = int(owners.max(initial=0)) + 1
    if owners.size and int(owners.max()) >= parts:
        last = int(owners.argmax())
        raise MeshprepError(
            f"vertex {last} is in part {owners[last]}, but there are {parts} parts, from 0"
        )
    imbalance = refuse_unbalanced(
        owners, parts=parts, weights=weights, shares=shares, room=room
    )
    neighbours = source.neighbours()
    vertex = rows_of_entries(neighbours.offset)
    other = neighbours.index
    if connected:
        refuse_scattered(owners, parts, neighbours)
    # Each edge stands in the graph twice.
    cut = int(np.count_nonzero(owners[vertex] != owners[other])) // 2
    shared = cut
    if isinstance(source, Elements):
        shared = _points_of_several(source, owners)
    return PartitionFigures(cut=cut, shared=shared, imbalance=imbalance)


def refuse_unbalanced(
    owners: NDArray[Any], *, parts: int, weights: Any, shares: Any, room: float
) -> float:
    """Refuse parts that hold more than they may, and empty ones; gives the imbalance."""
    columns = weight_columns(weights, owners.size)
    caps = part_caps(columns, parts=parts, shares=shares, room=room)
    imbalance = 0.0
    for column in range(columns.shape[1]):
        # Compare what each part holds in this column with its cap.
        held = np.bincount(owners, weights=columns[:, column], minlength=parts)
        over = np.flatnonzero(held > caps.most[:, column])
        if over.size:
            part = int(over[0])
            of_column = f" (column {column} of the weights)" if columns.shape[1] > 1 else ""
            raise MeshprepError(
                f"part {part} holds {held[part]:,.0f}, more than "
                f"{caps.most[part, column]:,.0f}, its share and room {room}{of_column}"
            )
        # Parts without a share have no target to be measured by.
        target = caps.target[:, column]
        used = target > 0
        if used.any():
            imbalance_of_column = float((held[used] / target[used]).max())
            imbalance = max(imbalance, imbalance_of_column)
    # A part with a share is empty only where there are fewer vertices than parts.
    count = np.bincount(owners, minlength=parts)
    has_share = caps.target.sum(axis=1) > 0
    empty = np.flatnonzero((count == 0) & has_share)
    if empty.size and owners.size >= parts:
        raise MeshprepError(f"part {empty[0]} is empty, of {owners.size:,} vertices")
    return imbalance


def refuse_scattered(owners: NDArray[Any], parts: int, neighbours: Csr) -> None:
    """Refuse a part that is not connected, naming two vertices that do not meet."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    # Take the edges inside parts: what these do not connect is scattered.
    vertex = rows_of_entries(neighbours.offset)
    other = neighbours.index
    inside = owners[vertex] == owners[other]
    ends = (vertex[inside], other[inside])
    ones = np.ones(int(inside.sum()), np.int8)
    kept = csr_array((ones, ends), shape=(owners.size, owners.size))
    _, component = connected_components(kept, directed=False)
    # Each component is named by its first vertex; a part with two of them is torn.
    _, first = np.unique(component, return_index=True)
    first = np.sort(first)
    n_components = np.bincount(owners[first], minlength=parts)
    scattered = np.flatnonzero(n_components > 1)
    if scattered.size:
        two = first[owners[first] == scattered[0]][:2]
        raise MeshprepError(
            f"part {scattered[0]} is not connected: vertices {listed(two)} do not meet "
            "inside it"
        )


def _points_of_several(elements: Elements, owners: NDArray[Any]) -> int:
    """The number of points that elements of several parts touch."""
    part = owners[rows_of_entries(elements.rows.offset)].astype(np.int64)
    lowest = np.full(elements.n_points, np.iinfo(np.int64).max)
    highest = np.full(elements.n_points, -1, np.int64)
    np.minimum.at(lowest, elements.rows.index, part)
    np.maximum.at(highest, elements.rows.index, part)
    return int(np.count_nonzero(highest > lowest))
