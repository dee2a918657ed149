"""Checkpoints: what of a program's state must be saved, when, and how it goes on [R14 6.1]."""
