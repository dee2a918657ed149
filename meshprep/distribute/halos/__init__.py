"""Ghosts of every part, their messages, and the cost of increments across parts."""
