"""Mesh files read by slices."""

from .model import SlicedMesh
from .scan import scan

__all__ = ["SlicedMesh", "scan"]
