"""Parts of a graph with few cut edges, under caps on their weights."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from meshprep_runtime.errors import MeshprepError, check_choice
from meshprep_runtime.types.maps import INDEX_LIMIT

from ...kernels import Float64s, Int32s, Int64s
from .bisection import RecursiveBisection, caps, refined_upwards
from .coarsening import coarsened
from .connected import connect_parts
from .graph import WeightedGraph, number_of_vertices, sizes_of_vertices
from .refinement import Balance, Figures, refined
from .tuning import NO_SEARCH, PRESETS, GraphTuning

# The weights of all vertices, or edges, add up to less.
MOST_WEIGHT = 2**53
# Seeds of whole runs are so far from each other.
FAR = 1_000_003


def partition_graph(
    offset: ArrayLike,
    neighbours: ArrayLike,
    *,
    parts: int,
    vertex_weights: ArrayLike | None = None,
    edge_weights: ArrayLike | None = None,
    shares: ArrayLike | None = None,
    room: float = 0.03,
    effort: str = "default",
    seed: int = 0,
    connected: bool = False,
) -> Int32s:
    """Cut the vertices of a graph into parts, so that edges of little weight are cut.

    Parameters
    ----------
    offset : (n + 1,) array of int
        The neighbours of vertex ``v`` are ``neighbours[offset[v]:offset[v + 1]]``.
    neighbours : (m,) array of int
        Each edge stands at both of its ends.
    parts : int
        Number of parts.
    vertex_weights : (n,) or (n, c) array of int, optional
        Weights from 0; each of several columns is balanced. Without them all weigh 1.
    edge_weights : (m,) array of int, optional
        Weights from 1, the same at both ends of an edge. Without them all weigh 1.
    shares : (parts,) array of float, optional
        What the weights of parts should be proportional to, from 0; without them all are
        equal. A part without a share stays empty.
    room : float
        A part may weigh ``ceil((1 + room) * share * total)`` in each column.
    effort : str
        ``"fast"``, ``"default"`` or ``"strong"``, which takes some eight times as long.
    seed : int
        From 0 to 2^31-1. The same seed gives the same parts, on any machine.
    connected : bool
        Whether pieces of parts are joined to other parts, where these have room, so that
        parts are connected.

    Returns
    -------
    (n,) array of int32
        The part of each vertex. Parts are empty only where they have no share, or where
        there are more of them than vertices.

    Raises
    ------
    MeshprepError
        For arguments that do not fit.

    Notes
    -----
    The cap holds always where all vertices weigh 1 and there is one column, and wherever
    the heaviest vertex weighs no more than the room of a part. Otherwise it holds where the
    search finds how; the weight above it is as small as the search finds. O(edges log
    parts) beside the searches.

    Source: the multilevel scheme of Karypis and Kumar, 1998; local searches of Sanders and
    Schulz, 2011, with moves of Fiduccia and Mattheyses, 1982.

    Examples
    --------
    >>> from meshprep.partitioning import partition_graph
    >>> path = [0, 1, 3, 5, 6], [1, 0, 2, 1, 3, 2]
    >>> sorted(partition_graph(*path, parts=2).tolist())
    [0, 0, 1, 1]
    """
    check_choice("effort", effort, tuple(PRESETS))
    graph = _graph_of_arrays(offset, neighbours, vertex_weights, edge_weights)
    share = _shares_of_parts(parts, shares)
    if not 0 <= room < np.inf:
        raise MeshprepError(f"room is {room}, must be a number from 0")
    if not 0 <= seed <= INDEX_LIMIT:
        raise MeshprepError(f"seed is {seed}, must be within 0..2^31-1")
    # Cut among the parts that have a share.
    n = number_of_vertices(graph)
    with_share = np.flatnonzero(share).astype(np.int32)
    if with_share.size == 1 or not n:
        return np.full(n, with_share[0], np.int32)
    if with_share.size >= n:
        return with_share[:n].copy()
    share = share[with_share]
    # Repeat the whole run from other seeds, and keep the best parts.
    tuning = PRESETS[effort]
    best, least = _partitioned(graph, share, room, tuning, seed)
    for run in range(1, tuning.runs):
        part, figures = _partitioned(graph, share, room, tuning, seed + FAR * run)
        if figures < least:
            best = part
            least = figures
    if connected:
        connect_parts(graph, best, _balance_of_parts(graph, share, room).cap)
    return with_share[best]


def _partitioned(
    graph: WeightedGraph, share: Float64s, room: float, tuning: GraphTuning, seed: int
) -> tuple[Int32s, Figures]:
    """The part of each vertex by one run, and the figures of the parts."""
    k = share.size
    balance = _balance_of_parts(graph, share, room)
    # Coarsen, and bisect the smallest graph recursively.
    size = max(tuning.bisected_size, tuning.bisected_size_per_part * k)
    hierarchy = coarsened(graph, size, tuning.heaviest_cluster, seed)
    smallest = hierarchy.graphs[-1]
    n = number_of_vertices(smallest)
    most = (1 + room) * share[:, None] * graph.vertex_weight.sum(axis=0)
    bisection = RecursiveBisection(
        most=most,
        shares=share,
        tuning=tuning,
        part=np.zeros(n, np.int32),
    )
    bisection.split(smallest, np.arange(n, dtype=np.int32), 0, k, seed)
    part = bisection.part
    # Refine on every level.
    loose = smallest is not graph
    figures = refined(smallest, part, balance, tuning.parts, seed, loose=loose)
    part, figures = refined_upwards(
        hierarchy=hierarchy,
        part=part,
        figures=figures,
        balance=balance,
        effort=tuning.parts,
        seed=seed,
        loose=False,
    )
    # Every part has a vertex where there are enough; refine once more after it.
    if _fill_empty_parts(graph, part, balance):
        figures = refined(graph, part, balance, NO_SEARCH, seed)
    return part, figures


def _balance_of_parts(graph: WeightedGraph, share: Float64s, room: float) -> Balance:
    """Aims and caps of all parts."""
    aim = share[:, None] * graph.vertex_weight.sum(axis=0)
    return Balance(aim=caps(aim), cap=caps((1 + room) * aim))


def _fill_empty_parts(graph: WeightedGraph, part: Int32s, balance: Balance) -> bool:
    """Put a vertex of another part into each part that is empty, the lightest there is.

    Whether there was one.
    """
    k = len(balance.cap)
    members = np.bincount(part, minlength=k)
    empty_parts = np.flatnonzero(members == 0)
    for empty in empty_parts:
        # Only parts with several vertices give one.
        candidates = np.flatnonzero(members[part] > 1)
        v = candidates[np.argmin(graph.size[candidates])]
        members[part[v]] -= 1
        members[empty] += 1
        part[v] = empty
    return empty_parts.size > 0


def _graph_of_arrays(
    offset: ArrayLike,
    neighbours: ArrayLike,
    vertex_weights: ArrayLike | None,
    edge_weights: ArrayLike | None,
) -> WeightedGraph:
    """The graph; raises MeshprepError for arrays that are none."""
    begins = _whole_numbers(offset, "offset")
    neighbour = _whole_numbers(neighbours, "neighbours")
    if begins.ndim != 1 or neighbour.ndim != 1 or not begins.size:
        raise MeshprepError(
            f"offset and neighbours have shapes {begins.shape} and {neighbour.shape}, must "
            "be (n + 1,) and (m,)"
        )
    # Compressed rows: offsets rise to the number of neighbours, which are vertices.
    n = begins.size - 1
    rising = (np.diff(begins) >= 0).all()
    if begins[0] != 0 or begins[-1] != neighbour.size or not rising:
        raise MeshprepError(f"offset must rise from 0 to {neighbour.size}")
    if n > INDEX_LIMIT:
        raise MeshprepError(f"the graph has {n:,} vertices, past 2^31-1")
    if neighbour.size and (neighbour.min() < 0 or neighbour.max() >= n):
        raise MeshprepError(
            f"neighbours name vertices {neighbour.min()}..{neighbour.max()}, but there are "
            f"{n}"
        )
    # Weights.
    if vertex_weights is None:
        vertex_weight = np.ones((n, 1), np.int64)
    else:
        vertex_weight = _weights(vertex_weights, "vertex_weights", low=0)
        if vertex_weight.ndim == 1:
            vertex_weight = vertex_weight[:, None]
        if vertex_weight.ndim != 2 or len(vertex_weight) != n or not vertex_weight.shape[1]:
            raise MeshprepError(
                f"vertex_weights have shape {vertex_weight.shape}, must be ({n},) or "
                f"({n}, columns)"
            )
    if edge_weights is None:
        edge_weight = np.ones(neighbour.size, np.int64)
    else:
        edge_weight = _weights(edge_weights, "edge_weights", low=1)
        if edge_weight.shape != neighbour.shape:
            raise MeshprepError(
                f"edge_weights have shape {edge_weight.shape}, must be {neighbour.shape}"
            )
    _check_both_ends(begins, neighbour, edge_weight)
    return WeightedGraph(
        offset=np.array(begins, np.int64),
        neighbour=np.array(neighbour, np.int32),
        edge_weight=np.array(edge_weight, np.int64),
        vertex_weight=np.array(vertex_weight, np.int64, order="C"),
        size=sizes_of_vertices(vertex_weight),
    )


def _check_both_ends(
    offset: NDArray[np.integer], neighbour: NDArray[np.integer], weight: Int64s
) -> None:
    """Raise MeshprepError where the edges at lower ends are not as many, and as heavy.

    Not every graph of which an end is missing is recognised: to be sure would take longer
    than a cut in two.
    """
    row = np.repeat(np.arange(offset.size - 1, dtype=np.int32), np.diff(offset))
    # Each edge has a lower and an upper end: both must list the same weight in all.
    is_upper = neighbour > row
    is_lower = neighbour < row
    n_upper = np.count_nonzero(is_upper)
    n_lower = np.count_nonzero(is_lower)
    if n_upper != n_lower or weight @ is_upper != weight @ is_lower:
        raise MeshprepError(
            "neighbours: an edge stands at one of its ends alone, or has another weight at "
            "its other end: give each edge at both ends"
        )


def _weights(given: ArrayLike, name: str, low: int) -> Int64s:
    """Weights as 64-bit integers; raises MeshprepError for others."""
    weights = _whole_numbers(given, name)
    if weights.size and weights.min() < low:
        raise MeshprepError(f"{name} have {weights.min()}, must be {low} or more")
    if weights.size and weights.astype(np.float64).sum() >= MOST_WEIGHT:
        raise MeshprepError(f"{name} add up to 2^53 or more: divide them")
    return weights.astype(np.int64)


def _whole_numbers(given: ArrayLike, name: str) -> NDArray[np.integer]:
    """The array; raises MeshprepError unless it has whole numbers."""
    array = np.asarray(given)
    if not array.size:
        return array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise MeshprepError(f"{name} have dtype {array.dtype}, must be whole numbers")
    return array


def _shares_of_parts(parts: int, shares: ArrayLike | None) -> Float64s:
    """The share of each part; they add up to 1. Raises MeshprepError for others."""
    if not 1 <= parts <= INDEX_LIMIT:
        raise MeshprepError(f"parts is {parts}, must be within 1..2^31-1")
    if shares is None:
        return np.full(parts, 1.0 / parts)
    share = np.asarray(shares, np.float64)
    if share.shape != (parts,):
        raise MeshprepError(f"shares have shape {share.shape}, must be ({parts},)")
    total = float(share.sum())
    are_shares = np.isfinite(share).all() and share.min() >= 0
    if not (are_shares and total > 0):
        raise MeshprepError("shares must be numbers from 0, and one above it")
    return share / total
