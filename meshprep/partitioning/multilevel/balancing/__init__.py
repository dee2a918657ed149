"""Balancing: blocks within both caps, in one piece; meshes of several components."""
