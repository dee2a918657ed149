"""The Gibbs-Poole-Stockmeyer ordering of a graph, in linear time [GPS76].

1. Ends of a pseudo-diameter: breadth-first search from the last level of the search before
   (:mod:`levels`).
2. The two level structures become one that is at most as wide: where they disagree,
   connected pieces, the largest first, go to the side that keeps the levels narrow.
3. Numbering level by level, by adjacency, lowest degree first.

Where many pieces are single vertices, as the leaves of a star are, each side takes half of
them. That halves the bandwidth, but the profile grows with the number of leaves. There the
levels of one end alone, those of Cuthill and McKee, are numbered too.

What is quadratic in the paper is bounded here (candidates of the last level) or done once
(components, levels). Both directions of a numbering are measured, and the better one is
kept. The paper begins at the end of lower degree. Here numbering begins at the end whose
levels more vertices have, so that a level is numbered from the one before, and neighbours
in the order are neighbours in the mesh. Smaller graphs try both ends and several starts
instead. Where the other end gives the best order, neighbours are scattered over memory: it
is numbered once more with vertices in their places (:func:`levels.number`), and that order
is kept if it is at most 5 % wider. The smallest graphs fit in a cache, and are numbered as
in the paper. In their order, neighbours change places where that lowers the profile and
does not widen the band.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..kernels import Int32s, helper, kernel, merged
from ..kernels.arrays import ZERO, Adjacency, breadth_first, counting_sort
from ..mesh.incidence import Csr
from .by_component import by_component
from .levels import (
    Effort,
    LevelNumbers,
    Limit,
    cost_of,
    number,
    pseudo_diameter,
)

# Neighbours that a small graph may visit in all its tries, and in all its sweeps. A graph
# of no more neighbours fits in a cache.
BUDGET = 1 << 16
# Starts for each component, at most.
MAX_TRIES = 8
# Sweeps over the final order, at most.
MAX_SWEEPS = 16
# Graphs of up to this many neighbours try at least two starts, both ends of each, and many
# candidates. The extra work is hidden by the memory traffic of larger graphs.
MIDDLE = 1 << 20
# Vertices of the last level tried as the other end, of large and of other graphs; [GPS76]
# tries all of them.
FEW = 3
MANY = 16
# Rounds in which the search for ends may begin again from a deeper vertex, at most.
MAX_ROUNDS = 12
# A component with one piece for this many vertices, or for fewer, is scattered: it is like
# a star.
SCATTERED = 8

# Ways to number a component: from either end, from the first with its levels alone, and the
# best of these once more, with vertices in their places.
FROM_U = 0
FROM_V = 1
ONE_END = 2
PLACED = 3
# An order in which neighbours stand together may be wider by this factor.
WIDER = 1.05
# The row with the levels of the best order, if it scatters neighbours.
BEST_ROW = 3


class Ends(NamedTuple):
    """What a try found about each component, in arrays over the components.

    ``v`` and ``u`` are the ends of a pseudo-diameter, ``row`` is the row with the levels
    that come from both, and ``depth`` their number: 0 where the try gives nothing new.
    ``v_first`` tells that most vertices have the levels of ``v``. A ``scattered``
    component has many pieces between the levels of its ends, as a star has.
    """

    v: NDArray
    u: NDArray
    row: NDArray
    depth: NDArray
    v_first: NDArray
    scattered: NDArray


class BestOrders(NamedTuple):
    """The best order of each component so far, in arrays over the components.

    It begins at ``start``. ``depth`` is the number of its levels if it scatters neighbours
    over memory, and 0 if it does not.
    """

    cost: NDArray
    bandwidth: NDArray
    start: NDArray
    depth: NDArray


class Scratch(NamedTuple):
    """Room for the work on a component, in arrays over all vertices.

    Nothing is allocated for a component, which would cost more than ordering a small one.
    """

    # The best order so far, and the one that is tried.
    orders: NDArray
    # Three rows of levels, and the levels of the best order if it scatters neighbours.
    levels: NDArray
    # A queue of vertices, and where its pieces begin.
    queue: NDArray
    bins: NDArray
    # Sizes of the levels.
    sizes: NDArray


class Levels(NamedTuple):
    """The levels of vertices from the first end, those from the second, and a state."""

    first: NDArray
    second: NDArray
    state: NDArray


class Line(NamedTuple):
    """An order of vertices, the place of each, and the lowest place of its neighbours."""

    order: NDArray
    place: NDArray
    lowest: NDArray


def gps(graph: Csr) -> Int32s:
    """Order the vertices of a symmetric graph for a small bandwidth and profile [GPS76].

    ``graph`` must be symmetric, which is not checked. Loops do no harm. In the order,
    ``new_to_old``, components stand in the order of their first vertices, vertices without
    neighbours last.

    O(vertices + edges): at most a fixed number of searches, and only the levels in use are
    looked at.
    """
    return by_component(graph, order_ranges)


def order_ranges(
    offset: NDArray,
    index: NDArray,
    bound: NDArray,
    far: NDArray,
    rounds: int = MAX_ROUNDS,
) -> NDArray:
    """The order of a graph whose components are the ranges between ``bound``.

    ``far`` has a vertex of each component to begin with. Each step goes over all
    components: it is a kernel of its own, which compiles faster than one of all steps.
    """
    graph = Adjacency(offset, index)
    n = offset.size - 1
    n_components = bound.size - 1
    n_neighbours = index.size
    scratch = Scratch(
        orders=np.empty((2, n), np.uint32),
        levels=np.empty((4, n), np.int32),
        queue=np.empty(n, np.uint32),
        bins=np.empty(n + 1, np.int32),
        sizes=np.empty(n, np.int32),
    )
    # A vertex that stands alone is in order.
    scratch.orders[0] = np.arange(n, dtype=np.uint32)
    ends = Ends(
        v=np.zeros(n_components, np.int64),
        u=np.zeros(n_components, np.int64),
        row=np.zeros(n_components, np.int64),
        depth=np.zeros(n_components, np.int64),
        v_first=np.zeros(n_components, np.bool_),
        scattered=np.zeros(n_components, np.bool_),
    )
    best = BestOrders(
        cost=np.full(n_components, np.inf),
        bandwidth=np.zeros(n_components),
        start=np.zeros(n_components, np.int64),
        depth=np.zeros(n_components, np.int64),
    )
    # The smaller the graph, the more starts it tries.
    if n_neighbours <= MIDDLE:
        tries = min(max(BUDGET // max(n_neighbours, 1), 2), MAX_TRIES)
        chosen = np.empty(MANY, np.uint32)
    else:
        tries = 1
        chosen = np.empty(FEW, np.uint32)
    effort = Effort(rounds=rounds, chosen=chosen)
    first_start = far.astype(np.int64)
    for t in range(tries):
        _find_levels(
            graph=graph,
            bound=bound,
            first_start=first_start,
            t=t,
            tries=tries,
            effort=effort,
            ends=ends,
            scratch=scratch,
        )
        _number_components(
            graph=graph,
            bound=bound,
            ends=ends,
            both=tries > 1,
            placed=False,
            best=best,
            scratch=scratch,
        )
    # Where neighbours do not fit in a cache, they should stand on few lines of memory.
    if n_neighbours > BUDGET and best.depth.any():
        _number_components(
            graph=graph,
            bound=bound,
            ends=ends,
            both=False,
            placed=True,
            best=best,
            scratch=scratch,
        )
    # Sweeps improve small graphs.
    order = scratch.orders[0]
    sweeps = min(BUDGET // max(n_neighbours, 1), MAX_SWEEPS)
    if sweeps > 0:
        _sweep_all(offset=offset, index=index, bound=bound, order=order, sweeps=sweeps)
    return order


@kernel
def _find_levels(
    graph: Adjacency,
    bound: NDArray,
    first_start: NDArray,
    t: int,
    tries: int,
    effort: Effort,
    ends: Ends,
    scratch: Scratch,
) -> None:
    """The levels of each component in try ``t``: algorithms I and II of [GPS76]."""
    for c in range(bound.size - 1):
        begin = bound[c]
        end = bound[c + 1]
        ends.depth[c] = 0
        if t >= end - begin - 1:
            continue
        if t == 0:
            start = first_start[c]
        else:
            start = _start_vertex(
                offset=graph.offset, begin=begin, end=end, t=t, tries=tries
            )
        # Algorithm I: levels from both ends of a pseudo-diameter.
        diameter = pseudo_diameter(
            graph=graph,
            begin=begin,
            end=end,
            start=start,
            levels=scratch.levels,
            queue=scratch.queue[begin:end],
            effort=effort,
        )
        # The ends of the try before give its orders again.
        if t > 0 and diameter.v == ends.v[c] and diameter.u == ends.u[c]:
            continue
        # Algorithm II: one level structure of both.
        size = scratch.sizes[: diameter.depth]
        size[:] = 0
        moved, pieces = combine(
            graph=graph,
            begin=begin,
            end=end,
            levels=Levels(
                first=scratch.levels[diameter.row_v],
                second=scratch.levels[diameter.row_u],
                state=scratch.levels[3 - diameter.row_v - diameter.row_u],
            ),
            queue=scratch.queue[begin:end],
            bins=scratch.bins,
            size=size,
            prefer_first=diameter.narrow_v,
        )
        ends.v[c] = diameter.v
        ends.u[c] = diameter.u
        ends.row[c] = diameter.row_v
        ends.depth[c] = diameter.depth
        ends.v_first[c] = 2 * moved <= end - begin
        if t == 0:
            ends.scattered[c] = pieces * SCATTERED >= end - begin


@kernel
def _number_components(
    graph: Adjacency,
    bound: NDArray,
    ends: Ends,
    both: bool,
    placed: bool,
    best: BestOrders,
    scratch: Scratch,
) -> None:
    """Number components by the levels that a try found: algorithm III of [GPS76].

    An order that costs less than the best so far takes its place. If not from ``both``
    ends, numbering goes from the one whose levels most vertices have, so that each is next
    to a vertex of the level before. Scattered components are numbered by the levels of one
    end, too. Orders that scatter neighbours are to be ``placed`` at last: numbered once
    more with vertices in their places, which is kept if it is little wider.
    """
    for c in range(bound.size - 1):
        begin = bound[c]
        end = bound[c + 1]
        depth = best.depth[c] if placed else ends.depth[c]
        if depth == 0:
            continue
        scattered = ends.scattered[c]
        # The way from the end whose levels fewer vertices have.
        other = FROM_U if ends.v_first[c] else FROM_V
        trial = scratch.orders[1, begin:end]
        size = scratch.sizes[:depth]
        from_v = scratch.levels[ends.row[c]]
        # Numbering overwrites levels.
        level = scratch.levels[(ends.row[c] + 1) % BEST_ROW]
        if placed:
            first_way = PLACED
            last_way = PLACED
        else:
            first_way = FROM_U
            last_way = ONE_END if scattered else FROM_V
        for way in range(first_way, last_way + 1):
            if way == other and not both:
                continue
            size[:] = 0
            _set_levels(
                graph=graph,
                v=ends.v[c],
                begin=begin,
                end=end,
                way=way,
                from_v=from_v,
                scratch=scratch,
                level=level,
                size=size,
            )
            # Where to begin, and what the order must keep to.
            root = ends.u[c] if way == FROM_U else ends.v[c]
            limit = Limit(cost=best.cost[c], bandwidth=np.inf, scattered=scattered)
            if placed:
                root = best.start[c]
                widest = WIDER * best.bandwidth[c]
                limit = Limit(cost=np.inf, bandwidth=widest, scattered=scattered)
            # One call for all ways, since each call is compiled anew.
            bandwidth, profile, reverse = number(
                graph=graph,
                start=root,
                begin=begin,
                numbers=LevelNumbers(order=trial, level=level, follower=scratch.queue),
                size=size,
                in_place=placed,
                limit=limit,
            )
            cost = cost_of(bandwidth, profile, scattered)
            if cost >= limit.cost:
                continue
            # Keep the order, and its levels if it scatters neighbours.
            _copy_order(trial, reverse, scratch.orders[0, begin:end])
            best.cost[c] = cost
            best.bandwidth[c] = bandwidth
            best.start[c] = root
            best.depth[c] = 0
            if way == other:
                best.depth[c] = depth
                best_level = scratch.levels[BEST_ROW]
                for p in range(begin, end):
                    best_level[p] = from_v[p] if way == FROM_V else depth - 1 - from_v[p]


@merged
def _set_levels(
    graph: Adjacency,
    v: int,
    begin: int,
    end: int,
    way: int,
    from_v: NDArray,
    scratch: Scratch,
    level: NDArray,
    size: NDArray,
) -> None:
    """Set the levels of a component on one way, and the size of each, which is 0 before."""
    if way == ONE_END:
        level[begin:end] = -1
        breadth_first(
            graph=graph,
            root=v,
            level=level,
            queue=scratch.queue[begin:end],
            width_limit=end - begin + 1,
        )
    for p in range(begin, end):
        if way == FROM_V:
            level[p] = from_v[p]
        elif way == FROM_U:
            level[p] = size.size - 1 - from_v[p]
        elif way == PLACED:
            level[p] = scratch.levels[BEST_ROW, p]
        size[level[p]] += 1


@helper
def _copy_order(trial: NDArray, reverse: bool, order: NDArray) -> None:
    """Copy an order, or its reverse."""
    last = order.size - 1
    for i in range(order.size):
        if reverse:
            order[i] = trial[last - i]
        else:
            order[i] = trial[i]


@helper
def _start_vertex(offset: NDArray, begin: int, end: int, t: int, tries: int) -> int:
    """Start vertex of try ``t``: the lowest degree, as in [GPS76], then evenly spread."""
    if t != 1:
        return begin + (end - begin) * t // tries
    best = begin
    for v in range(begin, end):
        if offset[v + 1] - offset[v] < offset[best + 1] - offset[best]:
            best = v
    return best


# A kernel of its own, since only small graphs need it compiled.
@kernel
def _sweep_all(
    offset: NDArray, index: NDArray, bound: NDArray, order: NDArray, sweeps: int
) -> None:
    """Lower the profile of the order of every component, in place."""
    graph = Adjacency(offset, index)
    scratch = np.empty((2, order.size), np.int32)
    for c in range(bound.size - 1):
        begin = bound[c]
        end = bound[c + 1]
        sweep(
            graph=graph,
            order=order[begin:end],
            begin=begin,
            sweeps=sweeps,
            scratch=scratch,
        )


@helper
def sweep(
    graph: Adjacency, order: NDArray, begin: int, sweeps: int, scratch: NDArray
) -> None:
    """Lower the profile of one component's order by exchanges of adjacent places.

    Sweeps go up and down by turns. Every other pair of sweeps also makes the exchanges that
    leave the profile as it is, which leads off plateaus. No exchange widens the band.
    ``order`` has the vertices of the component, ``begin`` to ``begin + size - 1``;
    ``scratch`` (2, n) is overwritten in its range. O(sweeps x edges of the component): an
    exchange moves every lowest neighbour by at most one place, so that its gain is found by
    counting.
    """
    if order.size < 3:
        return
    offset = graph.offset
    neighbours = graph.neighbours
    place_of = scratch[0]
    lowest = scratch[1]
    line = Line(order=order, place=place_of, lowest=lowest)
    for i in range(order.size):
        place_of[order[i]] = i
    bandwidth = ZERO
    for p in range(begin, begin + order.size):
        lowest[p] = place_of[p]
        for k in range(offset[p], offset[p + 1]):
            lowest[p] = min(lowest[p], place_of[neighbours[k]])
        bandwidth = max(bandwidth, place_of[p] - lowest[p])
    for s in range(sweeps):
        if s % 4 < 2:
            limit = 0
        else:
            limit = -1
        for j in range(order.size - 1):
            if s % 2 == 0:
                i = j
            else:
                i = order.size - 2 - j
            change = _profile_change(graph=graph, line=line, i=i, bandwidth=bandwidth)
            if change <= limit:
                _exchange(graph, line, i)


@helper
def _profile_change(graph: Adjacency, line: Line, i: int, bandwidth: int) -> int:
    """Change of the profile if places i and i + 1 are exchanged; 1 if the band widens."""
    offset = graph.offset
    neighbours = graph.neighbours
    place_of = line.place
    lowest = line.lowest
    u = line.order[i]
    v = line.order[i + 1]
    if lowest[u] < i and i + 1 - lowest[u] > bandwidth:
        return 1
    # Count u and v, and the vertices behind them whose lowest neighbour moves by one.
    change = -1 if lowest[v] <= i else 0
    meet = False
    for k in range(offset[v], offset[v + 1]):
        q = neighbours[k]
        meet |= q == u
        if place_of[q] > i + 1:
            if place_of[q] - i > bandwidth:
                return 1
            change += lowest[q] >= i
    for k in range(offset[u], offset[u + 1]):
        q = neighbours[k]
        if place_of[q] > i + 1 and lowest[q] == i:
            change -= 1
    return change + (1 if lowest[u] < i or meet else 0)


@helper
def _exchange(graph: Adjacency, line: Line, i: int) -> None:
    """Exchange places i and i + 1, and update the lowest neighbours."""
    offset = graph.offset
    neighbours = graph.neighbours
    order = line.order
    place_of = line.place
    lowest = line.lowest
    u = order[i]
    v = order[i + 1]
    meet = False
    for k in range(offset[u], offset[u + 1]):
        q = neighbours[k]
        meet |= q == v
        if place_of[q] > i + 1 and lowest[q] == i:
            lowest[q] = i + 1
    for k in range(offset[v], offset[v + 1]):
        q = neighbours[k]
        if place_of[q] > i + 1:
            lowest[q] = min(lowest[q], i)
    if lowest[u] == i and not meet:
        lowest[u] = i + 1
    lowest[v] = min(lowest[v], i)
    order[i] = v
    order[i + 1] = u
    place_of[u] = i + 1
    place_of[v] = i


@merged
def combine(
    graph: Adjacency,
    begin: int,
    end: int,
    levels: Levels,
    queue: NDArray,
    bins: NDArray,
    size: NDArray,
    prefer_first: bool,
) -> tuple[int, int]:
    """Merge the levels from both ends into one level structure [GPS76 algorithm II].

    The levels from the first end become the result; those from the second become counted
    from the first. Vertices where both agree are settled; the connected pieces of the
    others follow, largest first. ``queue`` and ``bins`` are scratch; ``size``, zero on
    entry, receives the number of vertices of each level. Returns how many vertices took a
    level of the second end that differs, and the number of pieces. O(n + edges): pieces
    are labelled once, and each looks only at the levels that it touches.
    """
    level = levels.first
    other = levels.second
    state = levels.state
    depth = size.size
    for p in range(begin, end):
        other[p] = max(0, depth - 1 - other[p])
        state[p] = level[p] != other[p]
        if not state[p]:
            size[level[p]] += 1
    # Settle the pieces of the others, largest first.
    count = _connected_pieces(
        graph=graph,
        begin=begin,
        end=end,
        state=state,
        queue=queue,
        bound=bins[begin:],
    )
    bound = bins[begin : begin + count + 1]
    moved = 0
    if count > 1:
        largest_first = _largest_first(bound, end - begin)
    else:
        largest_first = queue[:0]
    for i in range(count):
        c = largest_first[i] if count > 1 else 0
        moved += _place_piece(
            piece=queue[bound[c] : bound[c + 1]],
            level=level,
            other=other,
            size=size,
            prefer_first=prefer_first,
        )
    return moved, count


@helper
def _connected_pieces(
    graph: Adjacency, begin: int, end: int, state: NDArray, queue: NDArray, bound: NDArray
) -> int:
    """Connected pieces of the vertices with ``state`` 1, which becomes 0; their number.

    ``queue`` receives the vertices piece by piece, ``bound`` where each piece begins.
    """
    offset = graph.offset
    neighbours = graph.neighbours
    count = 0
    head = 0
    tail = 0
    bound[0] = 0
    for root in range(begin, end):
        if state[root] == 0:
            continue
        state[root] = 0
        queue[tail] = root
        tail += 1
        while head < tail:
            p = queue[head]
            head += 1
            for k in range(offset[p], offset[p + 1]):
                q = neighbours[k]
                if state[q] == 1:
                    state[q] = 0
                    queue[tail] = q
                    tail += 1
        count += 1
        bound[count] = tail
    return count


@helper
def _largest_first(bound: NDArray, n: int) -> NDArray:
    """The pieces by falling size, stable."""
    count = bound.size - 1
    pieces = np.empty(count, np.uint32)
    less = np.empty(count, np.int32)
    for c in range(count):
        pieces[c] = c
        less[c] = n - (bound[c + 1] - bound[c])
    return counting_sort(pieces, less, n + 1)[0]


@helper
def _place_piece(
    piece: NDArray, level: NDArray, other: NDArray, size: NDArray, prefer_first: bool
) -> int:
    """Put a piece on the side that stays narrower.

    Returns its size if that is the second side, or 0.
    """
    first = _widest(piece, level, size)
    second = _widest(piece, other, size)
    moves = second < first or (second == first and not prefer_first)
    if moves:
        for p in piece:
            level[p] = other[p]
    for p in piece:
        size[level[p]] += 1
    if moves:
        return piece.size
    return 0


@helper
def _widest(piece: NDArray, level: NDArray, size: NDArray) -> int:
    """The largest size of a level with a piece, among the levels that the piece touches."""
    widest = 0
    for p in piece:
        size[level[p]] += 1
        widest = max(widest, size[level[p]])
    for p in piece:
        size[level[p]] -= 1
    return widest
