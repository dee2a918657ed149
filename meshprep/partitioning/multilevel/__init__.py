"""Our multilevel partitioner: coarsening, initial blocks, refinement, balancing."""

from .partitioner import OPTIONS, blocks, improved

__all__ = ["OPTIONS", "blocks", "improved"]
