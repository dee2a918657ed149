"""Takes elements out of parts that are over their cap."""

import numpy as np
from numpy.typing import NDArray

from ...mesh.incidence import Csr
from ...partition.blocks.sizes import Sizes


def within_caps(graph: Csr, part: NDArray[np.int32], sizes: Sizes) -> NDArray[np.int32]:
    """Parts that keep their caps: the search leaves few over them, and by few elements.

    An element goes to the part of most of its neighbours that has room, and where none of these
    has, to one that has. Elements at the border go first. O(n), and the neighbours of all elements
    of the parts that are over their cap.
    """
    size = np.bincount(part, sizes.weight, sizes.cap.size).astype(np.int64)
    found = part.copy()
    for source in np.flatnonzero(size > sizes.cap):
        last = int(source)
        for element in _leaving(graph, found, int(source)):
            if size[source] <= sizes.cap[source]:
                break
            room = sizes.cap - size - sizes.weight[element]
            last = _target(graph, found, element, room, last)
            size[source] -= sizes.weight[element]
            size[last] += sizes.weight[element]
            found[element] = last
    return found


def _leaving(graph: Csr, part: NDArray[np.int32], source: int) -> NDArray[np.intp]:
    """The elements of a part, those with most neighbours elsewhere first, then the last ones."""
    inside = np.flatnonzero(part == source)[::-1]
    outside = [np.count_nonzero(part[_beside(graph, i)] != source) for i in inside]
    return inside[np.argsort(-np.array(outside), kind="stable")]


def _target(
    graph: Csr, part: NDArray[np.int32], element: int, room: NDArray[np.int64], last: int
) -> int:
    """Where an element goes; to the same part as the one before it where no neighbour tells."""
    beside = part[_beside(graph, element)]
    beside = beside[room[beside] >= 0]
    if beside.size:
        return int(np.bincount(beside).argmax())
    return last if room[last] >= 0 else int(room.argmax())


def _beside(graph: Csr, element: int) -> NDArray[np.int32]:
    return graph.index[graph.offset[element] : graph.offset[element + 1]]
