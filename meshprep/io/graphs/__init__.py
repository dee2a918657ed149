"""Graphs and sparse matrices: sets ``vertices`` and ``edges``, and the map between them."""

from . import matrix_market, metis

__all__ = ["FORMATS"]

FORMATS = (matrix_market.FORMAT, metis.FORMAT)
