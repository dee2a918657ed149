"""Edges, faces and boundaries from cells, in linear time."""

from .attach import unattached
from .derive import derive
from .names import derivable

__all__ = ["derivable", "derive", "unattached"]
