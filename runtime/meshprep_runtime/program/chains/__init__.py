"""Chains of loops: recorded, run later, and run tile by tile while a piece of mesh is in cache."""
