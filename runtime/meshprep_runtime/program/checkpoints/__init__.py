"""Checkpoints: save the least state of a program, and go on from it [R14 6.1]."""
