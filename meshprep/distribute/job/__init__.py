"""A split from file to file: its steps in their order, and the proof of its result."""
