"""A test tool: CUDA text run on the CPU under checks for races."""
