"""METIS k-way of a graph; as a program, of the graphs that stdin holds.

It imports nothing of meshprep: a process begins in a quarter of the time.
"""

import os
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ...mesh.incidence import Csr


def kway(graph: "Csr", shares: NDArray[np.float64], overfill: int, seed: int) -> NDArray[np.int32]:
    """The part of each element of a graph. O(neighbours), and 8 bytes a neighbour twice."""
    # not every system has it
    import pymetis

    wide = pymetis.CSRAdjacency(graph.offset, graph.index.astype(np.int64))
    del graph
    even = bool((shares == shares[0]).all())
    _, part = pymetis.part_graph(
        shares.size,
        wide,
        tpwgts=None if even else (shares / shares.sum()).tolist(),
        recursive=False,
        options=pymetis.Options(ufactor=overfill, seed=seed),
    )
    return np.asarray(part, dtype=np.int32)


def _serve() -> None:
    """Cut one graph after the other, as :class:`.metis.KwayProcesses` sends them."""
    given, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # what METIS itself prints is no answer
    os.dup2(2, 1)
    while len(header := given.read(40)):
        vertices, neighbours, parts, overfill, seed = np.frombuffer(header, np.int64).tolist()
        offset = np.frombuffer(given.read(8 * vertices + 8), np.int64)
        index = np.frombuffer(given.read(4 * neighbours), np.int32)
        shares = np.frombuffer(given.read(8 * parts), np.float64)
        graph = cast("Csr", SimpleNamespace(offset=offset, index=index))
        del offset, index
        answers.write(kway(graph, shares, overfill, seed).data)
        answers.flush()


if __name__ == "__main__":
    _serve()
