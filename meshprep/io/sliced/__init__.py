"""Mesh files read by slices."""

from .stored import SlicedMesh, scan

__all__ = ["SlicedMesh", "scan"]
