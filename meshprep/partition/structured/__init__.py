"""Lines, rectangles and bricks of structured meshes."""

from .partitioner import OPTIONS, structured

__all__ = ["OPTIONS", "structured"]
