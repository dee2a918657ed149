"""Checks of a plan: the structure of its arrays, and the proof that no loop races."""
