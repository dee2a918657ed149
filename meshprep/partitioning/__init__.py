"""Partitioners: they cut a set into blocks; one signature, one registry."""

from .blocks_of import BlockProblem, Blocks, blocks_of, loads
from .graph.partitioner import partition_graph
from .options import Option, Partitioner
from .registry import PARTITIONERS, partition

__all__ = [
    "PARTITIONERS",
    "BlockProblem",
    "Blocks",
    "Option",
    "Partitioner",
    "blocks_of",
    "loads",
    "partition",
    "partition_graph",
]
