"""Partitioners: they cut a set into blocks; one signature, one registry."""

from .blocks_of import BlockProblem, Blocks, blocks_of, loads
from .options import Option
from .registry import PARTITIONERS, partition

__all__ = ["PARTITIONERS", "BlockProblem", "Blocks", "Option", "blocks_of", "loads", "partition"]
