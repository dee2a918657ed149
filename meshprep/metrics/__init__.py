"""Figures of a plan: reuse, blocks, colours, traffic, occupancy, predicted cost."""
