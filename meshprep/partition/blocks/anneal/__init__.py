"""Simulated annealing of clusters between blocks, level by level and group by group."""
