"""Groups of neighbouring blocks, and the clusters of each."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from meshprep_runtime.cpu.pool import thread_count

from ....kernels import Int32s, Int64s
from ....kernels.arrays import sort_by
from .levels import MAX_WORKERS


class Group(NamedTuple):
    """The clusters and blocks of one group, and the rank of each in its own group."""

    clusters: Int32s
    blocks: Int32s
    rank_of_block: Int32s
    rank_of_cluster: Int32s


class Grouping(NamedTuple):
    """Clusters and blocks sorted by group, and the rank of each in its group."""

    groups: int
    cluster_offset: Int64s
    clusters: Int32s
    block_offset: Int64s
    blocks: Int32s
    rank_of_block: Int32s
    rank_of_cluster: Int32s

    @classmethod
    def of(cls, block: Int32s, group_of_block: Int32s) -> Grouping:
        """Group the clusters by the group of their block. Linear."""
        count = int(group_of_block.max(initial=-1)) + 1
        block_offset, blocks = sort_by(group_of_block, count)
        cluster_offset, clusters = sort_by(group_of_block[block], count)
        return cls(
            groups=count,
            cluster_offset=cluster_offset,
            clusters=clusters,
            block_offset=block_offset,
            blocks=blocks,
            rank_of_block=_ranks(block_offset, blocks),
            rank_of_cluster=_ranks(cluster_offset, clusters),
        )

    def group(self, g: int) -> Group:
        """The clusters and blocks of group ``g``."""
        clusters = self.clusters[self.cluster_offset[g] : self.cluster_offset[g + 1]]
        blocks = self.blocks[self.block_offset[g] : self.block_offset[g + 1]]
        return Group(
            clusters=clusters,
            blocks=blocks,
            rank_of_block=self.rank_of_block,
            rank_of_cluster=self.rank_of_cluster,
        )

    def shares(self) -> list[Int64s]:
        """The groups of each worker, dealt in turn.

        There are few workers, since each of them needs an array over all points.
        """
        if self.clusters.size:
            workers = min(MAX_WORKERS, thread_count(), self.groups)
        else:
            workers = 0
        return [np.arange(worker, self.groups, workers) for worker in range(workers)]


def _ranks(offset: Int64s, members: Int32s) -> Int32s:
    """The position of every member in its group."""
    rank = np.empty(members.size, np.int32)
    for begin, end in pairwise(offset):
        rank[members[begin:end]] = np.arange(end - begin, dtype=np.int32)
    return rank
