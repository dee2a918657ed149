"""Our partitioner: bisection, then annealed moves that count the loads."""

from .partitioner import OPTIONS, blocks, improved

__all__ = ["OPTIONS", "blocks", "improved"]
