"""The text of a GPU program: arguments, blocks, rows and what a thread does, in CUDA C."""
