"""Edges, faces and boundaries from cells, in linear time."""

from .attach import unattached
from .derive import derive
from .names import derivable, steps_of

__all__ = ["derivable", "derive", "steps_of", "unattached"]
