"""A cut of sets that stand in an order of locality: runs of it are clusters, which METIS cuts."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meshprep_runtime.maps import offsets_of

from ...partition.metis import has_metis
from ..metis import UFACTOR
from ..ranks import Ranks, of_root
from ..runs import run_ends
from ..subject import SplitSubject
from .homes import Homes, blocks

# The most elements of a cluster, and how many clusters a part should have at least.
LARGEST, ENOUGH = 256, 64

Numbers = NDArray[np.int64]


class Clusters(NamedTuple):
    """Runs of elements, ``ends[i]`` to below ``ends[i + 1]``, each cut evenly from ``first[i]``."""

    ends: Numbers
    first: Numbers

    @property
    def total(self) -> int:
        return int(self.first[-1])

    def of(self, elements: NDArray[np.integer]) -> Numbers:
        """The cluster of each element."""
        run = np.searchsorted(self.ends, elements, side="right") - 1
        length, pieces = np.diff(self.ends)[run], np.diff(self.first)[run]
        return self.first[run] + (elements - self.ends[run]) * pieces // length

    def sizes(self) -> Numbers:
        """Elements of each cluster."""
        run = np.repeat(np.arange(self.ends.size - 1), np.diff(self.first))
        length, pieces = np.diff(self.ends)[run], np.diff(self.first)[run]
        at = np.arange(self.total) - self.first[run]
        return -((at + 1) * length // -pieces) + (at * length // -pieces)


def clusters_of(subject: SplitSubject, parts: int) -> Clusters:
    """Clusters of the leading set, which do not leave its runs."""
    ends = np.unique(subject.leading_runs)
    size = max(1, min(LARGEST, int(ends[-1]) // (ENOUGH * parts)))
    pieces = -(-np.diff(ends) // size)
    return Clusters(ends, offsets_of(pieces))


def cut_of_clusters(
    subject: SplitSubject, weights: NDArray[np.float64], ranks: Ranks
) -> NDArray[np.int32]:
    """The part of every element at home here; clusters stay whole.

    O(n / ranks), and on rank 0 the graph of all clusters.
    """
    n = subject.sizes[subject.leading_set]
    clusters = clusters_of(subject, weights.size)
    every = ranks.allgather(_neighbours(subject, clusters, ranks))
    part = of_root(ranks, lambda: _part_of_cluster(clusters, every, weights))
    own = Homes(n, ranks).own
    elements = np.arange(own.start, own.stop)
    if not part.size:
        return np.searchsorted(run_ends(n, weights), elements, side="right").astype(np.int32)
    return part[clusters.of(elements)]


def _neighbours(subject: SplitSubject, clusters: Clusters, ranks: Ranks) -> tuple[Numbers, Numbers]:
    """Pairs of clusters as ``low * count + high``, and how often rows at home here have both."""
    leading = subject.leading_map
    assert leading is not None
    keys, counts = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for rows in blocks(ranks, leading.size):
        of = clusters.of(leading.table[rows].astype(np.int64))
        for a in range(leading.arity):
            for b in range(a):
                low, high = np.minimum(of[:, a], of[:, b]), np.maximum(of[:, a], of[:, b])
                found = (low * clusters.total + high)[low < high]
                key, count = np.unique(found, return_counts=True)
                keys.append(key)
                counts.append(count)
    return _summed(np.concatenate(keys), np.concatenate(counts))


def _summed(keys: Numbers, counts: Numbers) -> tuple[Numbers, Numbers]:
    key, place = np.unique(keys, return_inverse=True)
    total = np.zeros(key.size, np.int64)
    np.add.at(total, place.reshape(-1), counts)
    return key, total


def _part_of_cluster(
    clusters: Clusters, pairs: list[tuple[Numbers, Numbers]], weights: NDArray[np.float64]
) -> NDArray[np.int32]:
    """METIS on the graph of clusters; empty where none has a neighbour, or METIS is missing."""
    key, count = _summed(*(np.concatenate(column) for column in zip(*pairs, strict=True)))
    if not (key.size and has_metis()):
        return np.empty(0, np.int32)
    import pymetis

    low, high = np.divmod(key, clusters.total)
    source, target = np.concatenate([low, high]), np.concatenate([high, low])
    order = np.lexsort((target, source))
    offset = np.searchsorted(source[order], np.arange(clusters.total + 1))
    even = bool((weights == weights[0]).all())
    _, part = pymetis.part_graph(
        weights.size,
        pymetis.CSRAdjacency(offset, target[order]),
        vweights=clusters.sizes(),
        eweights=np.concatenate([count, count])[order],
        tpwgts=None if even else weights.tolist(),
        recursive=False,
        options=pymetis.Options(ufactor=UFACTOR, seed=0),
    )
    return np.asarray(part, dtype=np.int32)
