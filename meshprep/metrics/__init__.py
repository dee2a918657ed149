"""Figures of a plan: reuse, blocks, colours, traffic, cost."""
