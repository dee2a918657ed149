"""Sparse matrices that loops add to: how they are stored."""

from .stores import CsrMatrix, Ellpack, LocalMatrices

__all__ = ["CsrMatrix", "Ellpack", "LocalMatrices"]
