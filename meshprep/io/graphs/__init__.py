"""Graphs and sparse matrices: sets ``vertices`` and ``edges``, and the map between them."""
