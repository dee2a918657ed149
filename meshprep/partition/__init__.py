"""Partitioners: they cut a set into blocks; one signature, one registry."""

from .registry import (
    PARTITIONERS,
    BlockProblem,
    Blocks,
    Option,
    Partitioner,
    blocks_of,
    loads,
    partition,
)

__all__ = [
    "PARTITIONERS",
    "BlockProblem",
    "Blocks",
    "Option",
    "Partitioner",
    "blocks_of",
    "loads",
    "partition",
]
