"""Elemental kernels of five published programs [S19 section 3.1], from their equations.

Each module holds kernels as plain functions; the loops they belong to are in the TOML file of the
same name beside it, for ``meshprep reorder --loops``.
"""
