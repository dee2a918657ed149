"""Edges, faces, boundaries and dofs from cells, in linear time."""

from .attach import unattached
from .constraints import constrained_points
from .derive import derive
from .names import derivable, steps_of

__all__ = ["constrained_points", "derivable", "derive", "steps_of", "unattached"]
