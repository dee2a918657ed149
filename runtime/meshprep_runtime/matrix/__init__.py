"""Sparse matrices that loops add to: how they are stored."""

from .stores import Csr, Ellpack, LocalMatrices

__all__ = ["Csr", "Ellpack", "LocalMatrices"]
