"""Refinement: annealed moves of clusters between blocks, level by level, group by group."""
