"""Coarsening: elements grow into clusters of several levels, blocks into groups."""
