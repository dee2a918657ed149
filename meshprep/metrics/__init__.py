"""Figures of a plan: reuse, blocks, colours, traffic, occupancy, cost."""
