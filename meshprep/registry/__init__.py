"""Orders and partitioners by name: those of meshprep, and those that other packages add."""
