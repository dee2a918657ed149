"""Chains of loops: recorded, run later, and run in tiles whose data stay in cache."""
