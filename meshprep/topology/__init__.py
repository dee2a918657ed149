"""Edges, faces, boundaries and dofs from cells, in linear time."""

from .constraints import constrained_points
from .derive import derive
from .names import derivable, steps_of
from .tags import unattached

__all__ = ["constrained_points", "derivable", "derive", "steps_of", "unattached"]
